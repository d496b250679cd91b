import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DatabaseUnavailable } from '../../lib/db/errors.ts'
import { Entrant, SlotGate } from '../../lib/db/gate.ts'
import { stopClock } from '../support/clock.ts'

class Caller extends Entrant<string> {
  slot: string | undefined
  error: DatabaseUnavailable | undefined

  admit(slot: string): void {
    this.slot = slot
  }

  refuse(error: DatabaseUnavailable): void {
    this.error = error
  }
}

function enter(gate: SlotGate<string>): Caller {
  const caller = new Caller()
  gate.enter(caller)
  return caller
}

const LIMITS = { maxQueue: 10, waitMs: 10_000 }

describe('gate', () => {
  test('admits as many as it has slots before enter returns, never more', () => {
    const gate = new SlotGate(['a', 'b'], LIMITS)
    const callers = [enter(gate), enter(gate), enter(gate)]
    assert.deepEqual(
      callers.map(({ slot }) => slot),
      ['a', 'b', undefined],
    )
    assert.deepEqual(gate.stats, { slots: 2, inFlight: 2, waiting: 1, rejected: 0, timedOut: 0, reached: 1 })
    gate.close()
  })

  test('hands a free slot to the longest waiter', () => {
    const gate = new SlotGate(['a'], LIMITS)
    enter(gate)
    const waiting = [enter(gate), enter(gate), enter(gate)]
    gate.leave('a')
    gate.leave('a')
    assert.deepEqual(
      waiting.map(({ slot }) => slot),
      ['a', 'a', undefined],
    )
    assert.equal(gate.stats.inFlight, 1)
    gate.close()
  })

  test('uses the slot freed last, so that others may go idle', () => {
    const gate = new SlotGate(['a', 'b', 'c'], LIMITS)
    enter(gate)
    enter(gate)
    gate.leave('b')
    assert.equal(enter(gate).slot, 'b')
  })

  test('refuses at once when the queue is full', () => {
    const gate = new SlotGate(['a'], { maxQueue: 1, waitMs: 10_000 })
    enter(gate)
    enter(gate)
    const refused = enter(gate)
    assert.ok(refused.error instanceof DatabaseUnavailable)
    assert.equal(refused.error.code, 'GATE_FULL')
    assert.equal(gate.stats.rejected, 1)
    gate.close()
  })

  test('refuses each waiter when its own wait is over', (t) => {
    const clock = stopClock(t)
    const gate = new SlotGate(['a'], { maxQueue: 10, waitMs: 200 })
    enter(gate)
    const first = enter(gate)
    clock.tick(150)
    const second = enter(gate)
    clock.tick(49)
    assert.ok(!first.error)
    clock.tick(1)
    assert.equal((first as Caller).error?.code, 'GATE_TIMEOUT')
    clock.tick(148)
    assert.ok(!second.error)
    clock.tick(2)
    assert.equal((second as Caller).error?.code, 'GATE_TIMEOUT')
    assert.deepEqual(gate.stats, { slots: 1, inFlight: 1, waiting: 0, rejected: 0, timedOut: 2, reached: 2 })
    gate.leave('a')
    assert.equal(enter(gate).slot, 'a')
  })

  test('a timer that fires a fraction of a millisecond early still ends the wait', (t) => {
    const clock = stopClock(t)
    const gate = new SlotGate(['a'], { maxQueue: 10, waitMs: 200 })
    enter(gate)
    clock.tick(0.4)
    const waiting = enter(gate)
    clock.tick(200)
    assert.equal(waiting.error?.code, 'GATE_TIMEOUT')
  })

  test('removes waiters that gave up, wherever they are in the queue', () => {
    const gate = new SlotGate(['a'], LIMITS)
    enter(gate)
    const [first, second, third] = [enter(gate), enter(gate), enter(gate)] as const
    assert.equal(gate.abandon(second), true)
    assert.equal(gate.abandon(second), false)
    gate.leave('a')
    assert.equal(gate.abandon(first), false)
    gate.leave('a')
    assert.deepEqual([first.slot, second.slot, third.slot], ['a', undefined, 'a'])
    gate.leave('a')
    assert.deepEqual([gate.stats.inFlight, gate.stats.waiting], [0, 0])
  })

  test('a closed gate refuses waiting and new calls, even with a slot free', () => {
    const gate = new SlotGate(['a'], LIMITS)
    enter(gate)
    const waiting = enter(gate)
    gate.close()
    gate.leave('a')
    assert.equal(waiting.error?.code, 'DATABASE_ENDED')
    assert.equal(enter(gate).error?.code, 'DATABASE_ENDED')
    assert.equal(gate.stats.inFlight, 0)
  })
})
