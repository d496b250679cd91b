import assert from 'node:assert/strict'
import test from 'node:test'
import type { HttpError } from '../../lib/errors.ts'
import { IncomingBodies } from '../../lib/http/request/incoming-bodies.ts'

const KIB = 1024

function makeIncomingBodies(maxBytes: number) {
  const incomingBodies = new IncomingBodies(maxBytes)
  const cut: string[] = []
  const errors: HttpError[] = []
  const open = (name: string) =>
    incomingBodies.open((error) => {
      cut.push(name)
      errors.push(error)
    })
  return { incomingBodies, open, cut, errors }
}

test('the bytes of a body are counted until it ends, and removed once', () => {
  const { incomingBodies, open } = makeIncomingBodies(1000 * KIB)
  const [a, b] = [open('a'), open('b')]
  a.add(100)
  b.add(50)
  a.add(200)
  assert.equal(incomingBodies.bytes, 350)
  a.complete()
  a.end()
  a.end()
  assert.equal(incomingBodies.bytes, 50)
  b.end()
  assert.equal(incomingBodies.bytes, 0)
})

test('over the limit only the oldest large body is cut, with 503 and Retry-After', () => {
  const { incomingBodies, open, cut, errors } = makeIncomingBodies(1000 * KIB)
  const [slow, later, small] = [open('slow'), open('later'), open('small')]
  slow.add(300 * KIB)
  small.add(64 * KIB)
  later.add(300 * KIB)
  const quick = open('quick')
  quick.add(336 * KIB)
  assert.deepEqual(cut, [])
  quick.add(1)
  assert.deepEqual(cut, ['slow'])
  assert.equal(incomingBodies.bytes, 700 * KIB + 1)
  assert.equal(incomingBodies.cuts, 1)
  assert.deepEqual([errors[0]!.status, errors[0]!.headers['retry-after']], [503, '1'])
  assert.match(
    errors[0]!.message,
    /^too many bodies at once: more than 1024000 bytes; retry in a moment, or add replicas$/,
  )
})

test('complete bodies and small ones are not cut: a new large body is', () => {
  const { open, cut } = makeIncomingBodies(1000 * KIB)
  const [whole, small, large] = [open('whole'), open('small'), open('large')]
  whole.add(1000 * KIB)
  whole.complete()
  small.add(64 * KIB)
  assert.deepEqual(cut, [])
  large.add(64 * KIB + 1)
  assert.deepEqual(cut, ['large'])
})
