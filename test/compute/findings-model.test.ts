/** The rules of findings against a reference evaluation, over random histories. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findingsOfVictim, type Neighbor, type Thresholds } from '../../lib/compute/findings/index.ts'
import { evaluate, STEPS, type World } from './findings-reference.ts'
import { SETTINGS, worldBytes, worldOf } from './worlds.ts'

const RUNS = 5_000
const NOW = Date.parse('2026-01-01T12:00:00Z')
const WINDOW_SECS = 300
const MAX_ROWS = 6
const timeOf = (ageSecs: number) => `${new Date(NOW - ageSecs * 1_000).toISOString().slice(0, 19)}Z`

/** The result of the rules for the rows that the statement would read. */
function findingsIn({ histories, nodes }: World, thresholds: Thresholds) {
  const inWindow = histories.map(({ container, minutes }) => ({
    container,
    minutes: minutes.filter((row) => row.ageSecs <= WINDOW_SECS),
  }))
  const known = inWindow
    .filter(({ minutes }) => minutes.length > 0)
    .map(({ container, minutes }) => ({
      container,
      rows: minutes.slice(-MAX_ROWS).map((row) => ({ ...row, ts: timeOf(row.ageSecs).slice(0, -1) })),
      waits: minutes.flatMap(({ waits }) => waits),
    }))
  const neighbors = new Map<string, Neighbor>(known.map((one) => [one.container.containerUid, one]))
  const byUid = known.sort((a, b) => (a.container.containerUid < b.container.containerUid ? -1 : 1))
  return byUid.flatMap(({ container, rows, waits }) => {
    const there = known.filter((one) => one.container.node === container.node)
    const node = { memorySome10: nodes.get(container.node) ?? 0, containers: there }
    return findingsOfVictim(
      { container, rows, blame: { waits, restNs: 0, isWhole: true }, node },
      (uid) => neighbors.get(uid),
      thresholds,
    )
  })
}

test(`${RUNS} random worlds: the rules agree with the reference, and every step is reached`, () => {
  const seen = new Set<string>()
  let run = 0
  fc.assert(
    fc.property(worldBytes, (bytes) => {
      const thresholds = SETTINGS[run++ % 8 === 0 ? 1 : 0]!
      const world = worldOf(bytes, 'w')
      const expected = evaluate(world, {}, thresholds, timeOf, (step) => seen.add(step))
      const found = findingsIn(world, thresholds)
      for (const { message, victim } of found)
        assert.ok(message.startsWith(`${victim.namespace}/${victim.pod_name} `) && /^[ -~]+[.]$/.test(message), message)
      const rest = found.map(({ message: _, ...rest }) => rest)
      // Comparing texts is much cheaper; comparing objects gives a better message.
      if (JSON.stringify(rest) !== JSON.stringify(expected.findings)) assert.deepEqual(rest, expected.findings)
    }),
    { numRuns: RUNS },
  )
  assert.deepEqual(
    STEPS.filter((step) => !seen.has(step)),
    [],
    'what never happened is not compared',
  )
  assert.deepEqual(
    [...seen].filter((step) => !STEPS.includes(step)),
    [],
    'steps that the list lacks',
  )
})
