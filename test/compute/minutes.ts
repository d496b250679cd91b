/** Bodies and queries for the tests of compute history. */
import assert from 'node:assert/strict'
import { type App, type Fields, identity, inSecs, type Row } from './posts.ts'

export const MINUTES = '/pod/compute/history/batch'

const gauge = (avg: unknown, max: unknown, last: unknown) => ({ avg, max, last })

/** A container of POST /pod/compute/history/batch; a field given as undefined is left out. */
export const minute = ({ cpu, memory, ...fields }: Fields & { cpu?: object; memory?: object } = {}): Fields => ({
  ...identity(fields),
  samples: 12,
  cpu: {
    ...{
      usage_usec: 6_000_000,
      usage_millis: gauge(120.5, 250.25, 90.75),
      quota_usec: 200_000,
      period_usec: 50_000,
      request_millis: 250,
    },
    ...{ limit_millis: 2_000, nr_periods: 600, nr_throttled: 30, throttled_usec: 90_000 },
    ...{ psi_some10: { avg: 4.5, max: 12.25 }, psi_full10: { avg: 0.5, max: 1.75 }, ...cpu },
  },
  memory: {
    ...{
      current: gauge(300_000_000, 310_000_000, 305_000_000),
      working_set: gauge(200_000_000, 210_000_000, 205_000_000),
    },
    ...{
      limit: 536_870_912,
      request: 268_435_456,
      psi_some10: { avg: 1.5, max: 3.25 },
      psi_full10: { avg: 0.25, max: 0.75 },
    },
    ...{ events_high: 3, events_max: 2, oom_kill: 1, refault: 70, pgmajfault: 9, ...memory },
  },
  runq: null,
  blame: [],
  ...fields,
})

/** The returned row of such a container, without its id, identity, time and run queue. */
export const SHOWN = {
  ...{
    resolution_secs: 60,
    cpu_usage_millis_avg: 120.5,
    cpu_usage_millis_max: 250.25,
    cpu_usage_millis_last: 90.75,
    cpu_quota_usec: 200_000,
  },
  ...{
    cpu_period_usec: 50_000,
    cpu_request_millis: 250,
    cpu_limit_millis: 2_000,
    cpu_nr_periods: 600,
    cpu_nr_throttled: 30,
  },
  ...{
    cpu_throttled_usec: 90_000,
    cpu_psi_some10_avg: 4.5,
    cpu_psi_some10_max: 12.25,
    cpu_psi_full10_avg: 0.5,
    cpu_psi_full10_max: 1.75,
  },
  ...{
    mem_current_avg: 300_000_000,
    mem_current_max: 310_000_000,
    mem_current_last: 305_000_000,
    mem_working_set_avg: 200_000_000,
  },
  ...{
    mem_working_set_max: 210_000_000,
    mem_working_set_last: 205_000_000,
    mem_limit: 536_870_912,
    mem_request: 268_435_456,
  },
  ...{
    mem_psi_some10_avg: 1.5,
    mem_psi_some10_max: 3.25,
    mem_psi_full10_avg: 0.25,
    mem_psi_full10_max: 0.75,
    mem_events_high: 3,
  },
  ...{ mem_events_max: 2, mem_oom_kill: 1, mem_refault: 70, mem_pgmajfault: 9 },
}

/** The body of POST /pod/compute/history/batch. */
export const minutes = (containers: unknown, fields: Fields = {}): Fields => ({
  ...{ node: 'node-a', ts: inSecs(-5), interval_ms: 60_000, resolution_secs: 60 },
  containers,
  ...fields,
})

/** Posts minutes that must be accepted; returns how many were. */
export async function keep(app: Pick<App, 'post'>, containers: unknown[], fields: Fields = {}): Promise<number> {
  const answer = await app.post(MINUTES, minutes(containers, fields))
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['accepted'])
  return answer.json.accepted
}

/** The rows of GET /compute/history/{pod_uid}. */
export async function history(app: Pick<App, 'get'>, container: Fields, minutes: number | string = 60): Promise<Row[]> {
  const answer = await app.get(`/compute/history/${encodeURIComponent(container.pod_uid as string)}?minutes=${minutes}`)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['rows'])
  return answer.json.rows
}

/** The pairs of GET /compute/contention. */
export async function pairs(app: Pick<App, 'get'>, filter: Record<string, string | number>): Promise<Row[]> {
  const query = new URLSearchParams(
    Object.entries(filter).map(([key, value]): [string, string] => [key, String(value)]),
  )
  const answer = await app.get(`/compute/contention?${query}`)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['pairs'])
  return answer.json.pairs
}
