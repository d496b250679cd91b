/** Bodies and queries for the tests of capabilities. */
import assert from 'node:assert/strict'
import type { startApp } from '../support/app.ts'

export type App = Pick<Awaited<ReturnType<typeof startApp>>, 'sql' | 'post'>
export type Fields = Record<string, unknown>

export const PATH = '/runtime/capabilities'
export const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`

/** An entry with every field; a field given as undefined is left out. */
export const checks = (fields: Fields = {}): Fields => ({
  ...{ pod_namespace: 'shop', pod_name: 'web-0', workload_kind: 'Deployment', workload_name: 'web' },
  ...{ container_name: 'app', image_digest: DIGEST, capability: 'NET_BIND_SERVICE', granted: true, probed: false },
  ...{ count: 3, first_seen: '2026-01-01T00:00:00', last_seen: '2026-01-01T01:00:00' },
  ...fields,
})

/** The counts of an answer, whose status must be 200, in wire order. */
export async function take(app: Pick<App, 'post'>, entries: unknown): Promise<number[]> {
  const answer = await app.post(PATH, entries)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['accepted', 'dropped', 'written'])
  return Object.values(answer.json)
}

export interface Stored {
  [column: string]: unknown
  cluster_id: string
  capability: string
  granted: boolean
  probed: boolean
  count: number
  last_pod_name: string | null
  first_seen: string
  last_seen: string
  last_reported: string
}

/** All rows ordered by their keys, with times as answers print them. */
export const stored = async ({ sql }: Pick<App, 'sql'>): Promise<Stored[]> => [
  ...(await sql<Stored[]>`
    select cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted,
           probed, count::float8 as count, last_pod_name, wire_time(first_seen) as first_seen,
           wire_time(last_seen) as last_seen, wire_time(last_reported) as last_reported
    from runtime_capability
    order by pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed`),
]

/** The only row. */
export async function only(app: Pick<App, 'sql'>): Promise<Stored> {
  const rows = await stored(app)
  assert.equal(rows.length, 1)
  return rows[0]!
}

/** The time this many seconds after 2026-01-01. */
export const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString().slice(0, 19)
