import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsOf, thresholdsOf } from '../../lib/compute/findings/index.ts'
import { MINUTE_COLUMNS, type ReadRow } from '../../lib/compute/findings/statement.ts'
import { loadConfig } from '../../lib/config.ts'
import type { Gate } from '../../lib/db/index.ts'
import { turnsOf } from '../support/turns.ts'

const VICTIMS = 500
/** Ten times what is read, so that it takes several slices on any machine. */
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
const withTime = minutes(MINUTE_COLUMNS.length).replaceAll('[99', '["2026-01-01 12:00:00",99')
const rest = { is_short: null, node_some10: null, waits: null, rest_ns: null, is_whole: null }
const waits = JSON.stringify(Array.from({ length: 8 }, (_, i) => ['system', `unit-${i}`, null, 1]))
const rows: ReadRow[] = [
  ...Array.from({ length: NEIGHBORS }, (_, n) => ({ ...rest, role: 'neighbor' as const, ...names(n), minutes: minutes(4) })),
  ...Array.from({ length: VICTIMS }, (_, n) => ({
    ...{ ...rest, role: 'victim' as const, ...names(n), minutes: withTime },
    ...{ node_some10: 9, is_short: true, waits, rest_ns: 1, is_whole: true },
  })),
]

test('the findings of many containers are made in slices', async () => {
  const gate = (async () => rows) as unknown as Gate
  let text = ''
  const turns = await turnsOf(
    findingsOf(gate, { namespace: null, node: null }, thresholdsOf(loadConfig({}))).then((all) => {
      text = all
    }),
  )
  assert.ok(turns >= 4, `${turns} turns`)
  assert.equal(JSON.parse(text).findings.length, 2 * VICTIMS)
})
