import assert from 'node:assert/strict'
import test from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { HttpError } from '../../lib/errors.ts'
import { inflate } from '../../lib/supply-chain/inflate.ts'

const MAX = 100_000
const text = Buffer.from('some text '.repeat(50))
const packed = gzipSync(text)

function refused(bytes: Buffer, maxBytes = MAX): [number, string] {
  try {
    inflate(bytes, maxBytes)
  } catch (error) {
    if (error instanceof HttpError) return [error.status, error.message]
    throw error
  }
  return [0, 'taken']
}

test('gzip of one or several members is unpacked, whatever lengths they announce', () => {
  assert.deepEqual(inflate(packed, MAX), text)
  assert.deepEqual(
    inflate(Buffer.concat([packed, gzipSync('more'), gzipSync('')]), MAX),
    Buffer.concat([text, Buffer.from('more')]),
  )
  assert.deepEqual(inflate(gzipSync(''), MAX), Buffer.alloc(0))
  const large = Buffer.alloc(MAX, 'x')
  assert.deepEqual(inflate(Buffer.concat([gzipSync(large.subarray(1)), gzipSync('x')]), MAX), large)
})

test('the limit is exact to the byte, over all members', () => {
  assert.equal(inflate(packed, text.length).length, text.length)
  const tooLarge = [413, `the body inflates to more than ${text.length - 1} bytes`]
  assert.deepEqual(refused(packed, text.length - 1), tooLarge)
  assert.deepEqual(refused(gzipSync(Buffer.alloc(50_000_000)), text.length - 1), tooLarge)
  assert.deepEqual(
    refused(Buffer.concat([gzipSync(text.subarray(9)), gzipSync(text.subarray(0, 9))]), text.length - 1),
    tooLarge,
  )
})

test('truncated gzip is refused, wherever it ends', () => {
  const members = Buffer.concat([packed, gzipSync('more')])
  const ends = [packed.length, members.length]
  for (let length = 0; length <= members.length; length++) {
    const said = refused(members.subarray(0, length))
    if (ends.includes(length)) assert.equal(said[0], 0)
    else assert.deepEqual(said, [400, 'the body is not valid gzip: it ends early'], String(length))
  }
})

test('bytes behind the last member are refused, zeros too', () => {
  for (const more of [Buffer.from([0]), Buffer.alloc(512)])
    assert.deepEqual(refused(Buffer.concat([packed, more])), [
      400,
      `the body is not valid gzip: ${more.length} bytes follow its end`,
    ])
  for (const more of ['x', '\x1f\x8c', '\x1f\x8b'])
    assert.equal(refused(Buffer.concat([packed, Buffer.from(more, 'latin1')]))[0], 400, more)
})

test('damaged gzip and other bytes are refused', () => {
  const damaged = Buffer.from(packed)
  damaged[damaged.length - 6]! ^= 0xff
  const longer = Buffer.from(packed)
  longer[longer.length - 1]! ^= 0xff
  for (const bytes of [damaged, longer, text, deflateSync(text), Buffer.from([0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0])])
    assert.deepEqual(refused(bytes), [400, 'the body is not valid gzip: it is damaged'])
})
