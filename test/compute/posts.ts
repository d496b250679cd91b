/** Bodies and queries for the tests of compute. */
import assert from 'node:assert/strict'
import type { startApp } from '../support/app.ts'

export type App = Pick<Awaited<ReturnType<typeof startApp>>, 'sql' | 'post' | 'get'>
export type Fields = Record<string, unknown>

export const SAMPLES = '/pod/compute/batch'

let made = 0

/** A name that no other call returns. */
export const unique = (prefix: string) => `${prefix}-${++made}`

/** The identity of a container of a pod of its own. */
export function identity(fields: Fields = {}): Fields {
  const pod = (fields.pod_name as string) ?? unique('pod')
  const container = (fields.container as string) ?? 'app'
  return {
    container_uid: `uid-${pod}/${container}`,
    pod_uid: `uid-${pod}`,
    pod_name: pod,
    namespace: 'shop',
    container,
    cgroup_id: 4_711,
  }
}

export const CPU = {
  ...{
    usage_usec: 500_000,
    quota_usec: 200_000,
    period_usec: 50_000,
    request_millis: 250,
    limit_millis: 2_000,
    nr_periods: 50,
  },
  ...{ nr_throttled: 5, throttled_usec: 40_000, psi_some10: 12.5, psi_full10: 2.25 },
}
export const MEMORY = {
  ...{
    current: 300_000_000,
    working_set: 200_000_000,
    limit: 536_870_912,
    request: 268_435_456,
    psi_some10: 1.5,
    psi_full10: 0.5,
  },
  ...{ events_high: 3, events_max: 2, oom_kill: 1, refault: 70, pgmajfault: 9 },
}
export const RUNQ = {
  count: 60,
  p50_us: 200,
  p95_us: 900,
  p99_us: 1_500,
  max_us: 4_000,
  overflow: 2,
  hist: Array(24).fill(1),
}

/** A container of POST /pod/compute/batch; a field given as undefined is left out. */
export const sample = ({ cpu, memory, ...fields }: Fields & { cpu?: object; memory?: object } = {}): Fields => ({
  ...identity(fields),
  cpu: { ...CPU, ...cpu },
  memory: { ...MEMORY, ...memory },
  runq: null,
  blame: [],
  ...fields,
})

export const culprit = (waitNs: unknown, fields: Fields = {}): Fields => ({
  cgroup_id: 9_000,
  kind: 'pod',
  ref: 'other/busy-0/app',
  container_uid: 'uid-busy-0/app',
  count: 3,
  wait_ns: waitNs,
  ...fields,
})

/** A time so many seconds from now, in the format of agents. */
export const inSecs = (secs: number) => `${new Date(Date.now() + secs * 1_000).toISOString().slice(0, 19)}Z`

export const NODE = {
  ...{
    ctxt_per_sec: 1_200.5,
    compute_enabled: true,
    compute_supported: true,
    contention_loaded: true,
    unknown_blame_share: 0.25,
  },
  node_pressure: { cpu_some10: 10.5, cpu_full10: 1.25, mem_some10: 2.5, mem_full10: 0.75 },
  node_capacity: { cpu_cores: 8, memory_bytes: 34_359_738_368 },
  bpf_occupancy: { runq_enqueued: 11, runq_hist: 12, pair: 13, hist_update_failures: 4, pair_update_failures: 5 },
}

/** The body of POST /pod/compute/batch. */
export const tick = (containers: unknown, fields: Fields = {}): Fields => ({
  ...{ node: 'node-a', ts: inSecs(0), interval_ms: 5_000, ...NODE },
  containers,
  ...fields,
})

/** Posts samples that must be accepted; returns the number of rows. */
export async function take(app: Pick<App, 'post'>, containers: unknown[], fields: Fields = {}): Promise<number> {
  const answer = await app.post(SAMPLES, tick(containers, fields))
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['accepted'])
  return answer.json.accepted
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the test says it is.
export type Row = Record<string, any>

/** What GET /compute/latest answers. */
export async function latest(app: Pick<App, 'get'>, namespace = 'shop'): Promise<{ containers: Row[]; nodes: Row[] }> {
  const answer = await app.get(`/compute/latest?namespace=${encodeURIComponent(namespace)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

/** The rows of GET /compute/nodes. */
export async function nodes(app: Pick<App, 'get'>): Promise<Row[]> {
  const answer = await app.get('/compute/nodes')
  assert.equal(answer.status, 200, answer.text)
  return answer.json.nodes
}
