import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BoundedQueue } from '../../lib/audit/queue.ts'
import { collect } from '../support/heap.ts'

const FLOWS = 1_000_000
const CAPACITY = 2_048

/** A flow of so many bytes, none of them shared with another. */
const FLOW_BYTES = 64
/**
 * Memory that the queue may use beyond the waiting flows: as many removed flows, and the spare capacity of an array.
 */
const SLACK_BYTES = 3 * CAPACITY * FLOW_BYTES

interface Numbered {
  readonly n: number
  readonly more: number[]
}

function heldBytes(): number {
  collect('major')
  return process.memoryUsage().heapUsed
}

/** Puts a million flows through, `waiting` of which are in the queue at any time. */
function pass(queue: BoundedQueue<Numbered>, waiting: number): void {
  let left = 0
  for (let n = 0; n < FLOWS; n++) {
    if (!queue.push({ n, more: [n, n] })) assert.fail('no room')
    if (queue.length > waiting && queue.shift()!.n !== left++) assert.fail('out of order')
  }
}

for (const waiting of [0, 1, CAPACITY - 1]) {
  test(`of a million flows, with ${waiting} waiting, removed flows are freed`, () => {
    pass(new BoundedQueue<Numbered>(CAPACITY), waiting)
    const queue = new BoundedQueue<Numbered>(CAPACITY)
    const before = heldBytes()
    pass(queue, waiting)
    const held = heldBytes() - before
    assert.equal(queue.length, waiting)
    assert.ok(held < SLACK_BYTES + waiting * 2 * FLOW_BYTES, `${held} bytes are held for ${waiting} flows`)
  })
}

test('push returns whether there is room, and flows leave in order', () => {
  const queue = new BoundedQueue<number>(2)
  assert.deepEqual([queue.push(1), queue.push(2), queue.push(3)], [true, true, false])
  assert.equal(queue.shift(), 1)
  assert.deepEqual([queue.push(4), queue.push(5)], [true, false])
  assert.deepEqual([queue.shift(), queue.shift(), queue.shift()], [2, 4, undefined])
  assert.equal(queue.length, 0)
})

test('clear returns the number of waiting flows, and the queue works afterwards', () => {
  const queue = new BoundedQueue<number>(3)
  for (const n of [1, 2, 3]) queue.push(n)
  queue.shift()
  assert.equal(queue.clear(), 2)
  assert.deepEqual([queue.length, queue.shift(), queue.push(9), queue.shift()], [0, undefined, true, 9])
})
