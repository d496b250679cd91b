/** Bodies and queries for the tests of heartbeats. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type postgres from 'postgres'
import type { Answer } from '../support/app.ts'

export const PATH = '/runtime/coverage'
export type Fields = Record<string, unknown>

export const HOUR = 3_600
export const digest = (of: string) => `sha256:${createHash('sha256').update(of).digest('hex')}`
export const containerId = () => randomBytes(32).toString('hex')

/** The time this many seconds from now, as agents write it: naive UTC. */
export const inSecs = (secs: number) => new Date(Date.now() + secs * 1_000).toISOString().replace(/(\.000)?Z$/, '')

let made = 0

/** A namespace that no other test uses. */
export const namespace = () => `ns-${++made}`

/**
 * A heartbeat of a new container that is watched from its start two days ago; a field given as undefined is left out.
 */
export const heartbeat = (fields: Fields = {}): Fields => ({
  ...{ pod_namespace: 'shop', pod_name: 'web-0', workload_kind: 'Deployment', workload_name: 'web' },
  ...{ container_name: 'app', image_digest: digest('app'), container_id: containerId(), node_name: 'node-a' },
  ...{ mode: 'full', exec_probe: true, lib_probe: true, start_mode: 'start', tracking_since: inSecs(-48 * HOUR) },
  ...{ events_dropped: 0, unsent: 0, incomplete: false, ended: false, heartbeat_at: inSecs(-1), heartbeat_secs: 300 },
  ...fields,
})

export interface Taken {
  accepted: number
  dropped: number
  written: number
}

/** Posts heartbeats; the answer must be 200. */
export async function take(
  app: { post(path: string, body: unknown): Promise<Answer> },
  entries: unknown[],
): Promise<Taken> {
  const answer = await app.post(PATH, entries)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['accepted', 'dropped', 'written'])
  return answer.json
}

export interface Stored {
  [column: string]: unknown
  container_id: string
  tracking_since: string
  covered_since: string
  last_heartbeat: string
  gaps: number
  last_gap: string | null
  events_dropped: number
  last_drop_at: string | null
  ended: boolean
}

/** All stored rows ordered by container; times as agents write them, counts as numbers. */
export async function stored(sql: postgres.Sql): Promise<Stored[]> {
  const rows = await sql<{ row: Stored }[]>`select to_json(c) as row from runtime_coverage c order by container_id`
  return rows.map(({ row }) => row)
}

/** The only row. */
export async function only(sql: postgres.Sql): Promise<Stored> {
  const rows = await stored(sql)
  assert.equal(rows.length, 1)
  return rows[0]!
}

export interface Asked {
  namespace: string
  kind?: string
  name?: string
  container?: string
  image?: string
  hours?: number | null
  cluster?: string
}

export interface Coverage {
  covered: boolean
  observed_since: string | null
  reason: string | null
}

/** The only row that kg_runtime_coverage returns. */
export async function coverage(
  sql: postgres.Sql,
  {
    namespace,
    kind = 'Deployment',
    name = 'web',
    container = 'app',
    image = digest('app'),
    hours = 24,
    cluster = 'primary',
  }: Asked,
): Promise<Coverage> {
  const rows = await sql<Coverage[]>`
    select covered, to_json(observed_since) #>> '{}' as observed_since, reason
    from kg_runtime_coverage(${cluster}, ${namespace}, ${kind}, ${name}, ${container}, ${image}, ${hours})`
  assert.equal(rows.length, 1)
  assert.equal(rows[0]!.covered, rows[0]!.reason === null)
  return rows[0]!
}
