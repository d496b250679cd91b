import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsOf, thresholdsOf } from '../../lib/compute/findings/index.ts'
import { MINUTE_COLUMNS, type ReadRow } from '../../lib/compute/findings/statement.ts'
import { loadConfig } from '../../lib/config/index.ts'
import type { Gate } from '../../lib/db/index.ts'
import { turnsOf } from '../support/turns.ts'

const VICTIMS = 500
/** Ten times what one slice processes, so that it takes several slices on any machine. */
const NEIGHBORS = 30_000

const names = (n: number) => ({
  container_uid: `u-${n}`,
  pod_uid: 'u',
  namespace: 'shop',
  pod_name: `p-${n}`,
  container: 'app',
  node: `node-${n % 99}`,
})
const minutes = (columns: number) => JSON.stringify(Array.from({ length: 6 }, () => Array(columns).fill(99)))
const withTime = minutes(Object.keys(MINUTE_COLUMNS).length).replaceAll('[99', '["2026-01-01 12:00:00",99')
const rest = { is_short: null, node_some10: null, waits: null, rest_ns: null, is_whole: null }
const waits = JSON.stringify(Array.from({ length: 8 }, (_, i) => ['system', `unit-${i}`, null, 1]))
const rows: ReadRow[] = [
  ...Array.from({ length: NEIGHBORS }, (_, n) => ({
    ...rest,
    role: 'neighbor' as const,
    ...names(n),
    minutes: minutes(4),
  })),
  ...Array.from({ length: VICTIMS }, (_, n) => ({
    ...{ ...rest, role: 'victim' as const, ...names(n), minutes: withTime },
    ...{ node_some10: 9, is_short: true, waits, rest_ns: 1, is_whole: true },
  })),
]

const read = async (some: readonly ReadRow[]) => {
  const gate = (async () => some) as unknown as Gate
  return JSON.parse(await findingsOf(gate, { namespace: null, node: null }, thresholdsOf(loadConfig({}))))
}

test('a window with more minutes than the limit has no findings that need all containers of a node', async () => {
  const grown = JSON.stringify([
    [1, null, 1, null],
    [1, null, 1e9, null],
  ])
  const short = withTime.replaceAll('"2026-01-01 12:00:00",99,99,99,99', '"2026-01-01 12:00:00",99,99,99,999')
  const victim = { ...rest, role: 'victim' as const, ...names(1), minutes: short, node_some10: 9, is_short: true }
  const hog = { ...rest, role: 'neighbor' as const, ...names(100), minutes: grown }
  const cut = { ...rest, role: 'cut' as const, ...names(0), minutes: '' }
  const memory = ({ findings, truncated }: Awaited<ReturnType<typeof read>>) => [
    findings.at(-1).culprit?.pod_name,
    truncated,
  ]
  assert.deepEqual(memory(await read([hog, victim])), ['p-100', false])
  assert.deepEqual(memory(await read([cut, hog, victim])), [undefined, true])
  assert.deepEqual(memory(await read([victim])), [undefined, true], 'a node that is not there was too large')
})

test('findings of many containers are computed in slices', async () => {
  let findings: unknown[] = []
  const turns = await turnsOf(
    read(rows).then((all) => {
      findings = all.findings
    }),
  )
  assert.ok(turns >= 4, `${turns} turns`)
  assert.equal(findings.length, 2 * VICTIMS)
})
