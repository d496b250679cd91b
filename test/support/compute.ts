/** CPU and memory reports of agents, as values and as stored rows, for tests of what the broker makes of them. */
import type postgres from 'postgres'
import type { Container, Minute, Wait } from '../../lib/compute/findings/index.ts'

/** A minute of a container and its waits; `ageSecs` is its age. */
export interface StoredMinute extends Omit<Minute, 'ts'> {
  readonly ageSecs: number
  readonly waits: readonly Wait[]
  /** By default a minute. */
  readonly resolutionSecs?: number
}

export interface StoredHistory {
  readonly container: Container
  readonly minutes: readonly StoredMinute[]
}

let names = 0

/** A container with a name that no other test uses. */
export function container({
  namespace = 'shop',
  podName = `pod-${++names}`,
  name = 'app',
  node = 'node-1',
  podUid = `uid-${podName}`,
}: Partial<Record<'namespace' | 'podName' | 'podUid' | 'name' | 'node', string>> = {}): Container {
  return { containerUid: `${podUid}/${name}`, podUid, namespace, podName, container: name, node }
}

/** A quiet minute with the given fields changed; the maximum of a pressure is its mean unless given. */
export function minute(over: Partial<StoredMinute> = {}): StoredMinute {
  return {
    ageSecs: 20,
    waits: [],
    usageMillis: 100,
    requestMillis: null,
    limitMillis: 1_000,
    periodUsec: 100_000,
    periods: 600,
    throttledUsec: 0,
    cpuSomeAvg: 0,
    cpuSomeMax: over.cpuSomeAvg ?? 0,
    cpuFullMax: 0,
    memoryBytes: 100 * 2 ** 20,
    memoryRequestBytes: 2 ** 30,
    memoryLimitBytes: null,
    memorySomeAvg: 0,
    memorySomeMax: over.memorySomeAvg ?? 0,
    memoryFullMax: 0,
    eventsHigh: 0,
    eventsMax: 0,
    oomKills: 0,
    refaults: 0,
    runqCount: null,
    runqP99Us: null,
    runqOverflow: null,
    ...over,
  }
}

/** Consecutive minutes, the last 20 s ago; null leaves a minute out. */
export const minutes = (...rows: readonly (Partial<StoredMinute> | null)[]): StoredMinute[] =>
  rows.flatMap((row, i) => (row === null ? [] : [minute({ ageSecs: 20 + 60 * (rows.length - 1 - i), ...row })]))

export const wait = (kind: string, ref: string, waitNs: number, containerUid: string | null = null): Wait => ({
  kind,
  ref,
  containerUid,
  waitNs,
})

/** A wait caused by a container. */
export const waitFor = ({ namespace, podName, container, containerUid }: Container, waitNs: number): Wait =>
  wait('pod', `${namespace}/${podName}/${container}`, waitNs, containerUid)

/** Columns that do not matter in these tests. */
const REST = {
  cpu_usage_millis_max: 0,
  cpu_usage_millis_last: 0,
  cpu_nr_throttled: 0,
  cpu_psi_full10_avg: 0,
  mem_current_avg: 0,
  mem_current_max: 0,
  mem_working_set_avg: 0,
  mem_working_set_max: 0,
  mem_working_set_last: 0,
  mem_psi_full10_avg: 0,
  mem_pgmajfault: 0,
}

const columnsOf = (row: StoredMinute) => ({
  ...REST,
  resolution_secs: row.resolutionSecs ?? 60,
  cpu_usage_millis_avg: row.usageMillis,
  cpu_request_millis: row.requestMillis,
  cpu_limit_millis: row.limitMillis,
  cpu_period_usec: row.periodUsec,
  cpu_nr_periods: row.periods,
  cpu_throttled_usec: row.throttledUsec,
  cpu_psi_some10_avg: row.cpuSomeAvg,
  cpu_psi_some10_max: row.cpuSomeMax,
  cpu_psi_full10_max: row.cpuFullMax,
  mem_current_last: row.memoryBytes,
  mem_request: row.memoryRequestBytes,
  mem_limit: row.memoryLimitBytes,
  mem_psi_some10_avg: row.memorySomeAvg,
  mem_psi_some10_max: row.memorySomeMax,
  mem_psi_full10_max: row.memoryFullMax,
  mem_events_high: row.eventsHigh,
  mem_events_max: row.eventsMax,
  mem_oom_kill: row.oomKills,
  mem_refault: row.refaults,
  runq_count: row.runqCount,
  runq_p99_us: row.runqP99Us,
  runq_overflow: row.runqOverflow,
})

/** The time that was `ageSecs` before `now`, in naive UTC. */
export const timeAt = (now: number, ageSecs: number): string =>
  new Date(now - ageSecs * 1_000).toISOString().slice(0, 19)

/** The columns of a minute except its container and time. */
const LISTED = Object.keys(columnsOf(minute()))

/** Stores histories of containers, and the memory pressure of nodes; returns the time from which ages count. */
export async function storeCompute(
  sql: postgres.Sql,
  histories: readonly StoredHistory[],
  nodes: Iterable<readonly [node: string, memorySome10: number]> = [],
): Promise<number> {
  const [{ now }] =
    (await sql`select floor(extract(epoch from clock_timestamp()))::float8 * 1000 as now`) as unknown as [
      { now: number },
    ]
  const rows = histories.flatMap(({ container: { containerUid: uid }, minutes }) =>
    minutes.map((row) => ({ uid, ts: timeAt(now, row.ageSecs), ...columnsOf(row) })),
  )
  const waits = histories.flatMap(({ container: { containerUid: uid }, minutes }) =>
    minutes.flatMap((row) => row.waits.map((one) => ({ uid, ts: timeAt(now, row.ageSecs), ...one }))),
  )
  await sql`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select "containerUid", "podUid", namespace, "podName", container, node
    from jsonb_to_recordset(${JSON.stringify(histories.map(({ container }) => container))}::text::jsonb)
      as c("containerUid" text, "podUid" text, namespace text, "podName" text, container text, node text)
    on conflict do nothing`
  await sql`
    insert into compute_minute (container_id, ts, ${sql.unsafe(LISTED.join(', '))})
    select c.id, r.ts, ${sql.unsafe(LISTED.map((name) => `r.${name}`).join(', '))}
    from jsonb_array_elements(${JSON.stringify(rows)}::text::jsonb) j(row)
    cross join jsonb_populate_record(null::compute_minute, j.row) r
    join compute_container c on c.container_uid = j.row ->> 'uid'`
  await sql`
    insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, culprit_container_uid, count, wait_ns)
    select c.id, w.ts, w.kind, w.ref, w."containerUid", 1, w."waitNs"
    from jsonb_to_recordset(${JSON.stringify(waits)}::text::jsonb)
      as w(uid text, ts timestamp, kind text, ref text, "containerUid" text, "waitNs" bigint)
    join compute_container c on c.container_uid = w.uid`
  await sql`
    insert into compute_node (node, ts, interval_ms, ctxt_per_sec, compute_enabled, compute_supported, contention_loaded, cpu_some10, cpu_full10,
                              mem_some10, mem_full10, cpu_cores, memory_bytes, bpf_runq_enqueued, bpf_runq_hist, bpf_pair, unknown_blame_share, updated_at)
    select n.node, now(), 5000, 0, true, true, true, 0, 0, n.pressure, 0, 4, 1, 0, 0, 0, 0, now()
    from jsonb_to_recordset(${JSON.stringify([...nodes].map(([node, pressure]) => ({ node, pressure })))}::text::jsonb) as n(node text, pressure float8)
    on conflict (node) do update set mem_some10 = excluded.mem_some10`
  return now
}
