import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { cursor, cursorText, writeCursor } from '../../lib/http/request/cursor.ts'
import { anyCharacter } from '../support/any-character.ts'

const after = cursor(z.tuple([z.int().min(0).max(5), cursorText, cursorText]))
const encoded = (text: string) => Buffer.from(text).toString('base64url')

test('a written cursor is read again, whatever its keys; it needs no escaping in a URL', () => {
  const text = fc.string({ unit: anyCharacter }).filter((one) => !one.includes('\0'))
  fc.assert(
    fc.property(fc.nat(5), text, text, (number, one, other) => {
      const sent = writeCursor([number, one, other])
      assert.match(sent, /^[\w-]+$/)
      assert.deepEqual(after.parse(sent), [number, one, other])
    }),
  )
})

test('a missing parameter is the first page', () => assert.equal(after.parse(undefined), null))

test('a cursor that this list did not write is refused', () => {
  const good = writeCursor([1, 'a', 'b'])
  const bad = [
    ...['not a cursor', '3.4812', `${good}=`, `${good}!`, ` ${good}`, good.slice(0, -2), `${good}${good}`],
    ...[
      '[1,"a","b"] ',
      '[1, "a","b"]',
      '[1.0,"a","b"]',
      '[1,"a"]',
      '[1,"a","b","c"]',
      '["1","a","b"]',
      '[6,"a","b"]',
      '[-1,"a","b"]',
    ].map(encoded),
    ...[
      '[1,"a\\u0000","b"]',
      '[1,"a","\\ud800"]',
      '[1,"a",null]',
      '[1e400,"a","b"]',
      'null',
      '{}',
      '[',
      `${'['.repeat(9_000)}`,
    ].map(encoded),
  ]
  for (const sent of bad)
    assert.equal(
      after.safeParse(sent).error?.issues[0]?.message,
      'expected the nextAfter of a page of this list',
      sent.slice(0, 80),
    )
})
