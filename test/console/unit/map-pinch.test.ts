/** Two fingers zoom and move the map; one alone does not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fingers } from '../../../wrangler-free-deploy/console/pages/map/fingers.ts'
import { pinched, unitsAt } from '../../../wrangler-free-deploy/console/pages/map/view.ts'

const at = (pointerId: number, offsetX: number, offsetY: number) => ({ pointerId, offsetX, offsetY })

test('fingers that move apart zoom, and the content between them stays there', () => {
  const view = { x: 10, y: 20, scale: 1 }
  const before = [
    { x: 100, y: 100 },
    { x: 200, y: 100 },
  ] as const
  const after = [
    { x: 80, y: 130 },
    { x: 280, y: 130 },
  ] as const
  const next = pinched(view, before, after)
  assert.equal(next.scale, 2)
  assert.deepEqual(unitsAt(next, 180, 130), unitsAt(view, 150, 100))
})

test('fingers at one place do not zoom without end', () => {
  const same = [
    { x: 5, y: 5 },
    { x: 5, y: 5 },
  ] as const
  assert.deepEqual(pinched({ x: 0, y: 0, scale: 1 }, same, same), { x: 0, y: 0, scale: 1 })
})

test('only two fingers that are down move the map', () => {
  const fingers = new Fingers()
  assert.equal(fingers.move(at(1, 0, 0)), null)
  fingers.down(at(1, 0, 0))
  assert.equal(fingers.move(at(1, 1, 1)), null)
  fingers.down(at(2, 10, 10))
  assert.deepEqual(fingers.move(at(2, 20, 10)), {
    before: [
      { x: 1, y: 1 },
      { x: 10, y: 10 },
    ],
    after: [
      { x: 1, y: 1 },
      { x: 20, y: 10 },
    ],
  })
  fingers.down(at(3, 5, 5))
  assert.equal(fingers.move(at(3, 6, 6)), null)
  fingers.up(3)
  fingers.up(1)
  assert.equal(fingers.move(at(2, 30, 10)), null)
})
