import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { longInteger, markLongIntegers } from '../../lib/json/long-integers.ts'

async function read(text: string): Promise<unknown> {
  const bytes = Buffer.from(text)
  await markLongIntegers(bytes, 'id')
  equal(bytes.length, Buffer.byteLength(text))
  return JSON.parse(bytes.toString(), (_, value) => longInteger(value) ?? value)
}

test('integers below 2^64 are exact under the key, in as many bytes as before', async () => {
  for (const digits of [
    '1000000000000000',
    '9007199254740993',
    '9999999999999999',
    '99999999999999999',
    '999999999999999999',
    '9999999999999999999',
    '18446744073709551615',
  ])
    for (const [before, after] of [
      ['{"id":', '}'],
      ['{"a":1,"id" :\n', ' ,"b":"é"}'],
      ['[{"id":7,"x":[{"id":', '\t}]}]'],
    ] as const) {
      const found = JSON.stringify(await read(before + digits + after), (_, value) =>
        typeof value === 'bigint' ? `=${value}` : value,
      )
      equal(found.includes(`"=${digits}"`), true, found)
    }
})

test('all other text is unchanged', async () => {
  const kept = [
    '{"id":123456789012345}',
    '{"id":18446744073709551616}',
    '{"id":-9007199254740993}',
    '{"id":9007199254740993.5}',
    '{"id":9007199254740993e1}',
    '{"no":9007199254740993}',
    '{"id":"9007199254740993"}',
    '{"text":"\\"id\\":9007199254740993,"}',
    '["id",9007199254740993]',
    '{"id":null}',
  ]
  for (const text of kept) equal(JSON.stringify(await read(text)), JSON.stringify(JSON.parse(text)))
})

test('invalid JSON does not become valid', async () => {
  for (const text of [
    '{"id":09007199254740993}',
    '{"id":9007199254740993',
    '{"id":9007199254740993:1}',
    '{"id"9007199254740993}',
    '"id"',
    '{"id":',
  ]) {
    const bytes = Buffer.from(text)
    await markLongIntegers(bytes, 'id')
    let isJson = true
    try {
      JSON.parse(bytes.toString())
    } catch {
      isJson = false
    }
    equal(isJson, text === '"id"', text)
  }
})

test('a text without a mark is not an integer', () => {
  for (const value of ['', '7f', '\x7f', '\x7fA', `\x7f${'z'.repeat(13)}`, `\x7f${'1'.repeat(14)}`, 7, null])
    equal(longInteger(value), null)
})
