/**
 * The data of the benchmark of compute, seeded by SQL: seven days of history, the last of them by the minute, the
 * others with a minute in five. The job packs and rolls up what is old. Data that is kept is brought up to now: only
 * what is missing is made.
 */
import type postgres from 'postgres'

const NODES = 300
export const CONTAINERS_PER_NODE = 40
const CONTAINERS_PER_NAMESPACE = 500
export const MINUTE_HOURS = 24
const DAYS = 7
/** Waits are read for six hours of a node: those of so many hours are made. */
const PAIR_HOURS = 7
/** What is kept longer than this is no day of minutes any more, and is made anew. */
const MAX_AGE_HOURS = 30
/** One in so many containers is stalled, one in so many throttled, and each node in so many is short of memory. */
const [STALLED_PART, THROTTLED_PART, SHORT_PART] = [25, 50, 20]

export const TABLES = [
  ...(['compute_minute', 'compute_minute_pack', 'compute_folded_pack', 'compute_contention'] as const),
  ...(['compute_contention_kept', 'compute_usage'] as const),
] as const

export interface Dataset {
  readonly nodes: number
  readonly containers: number
  readonly namespaces: number
}

export function datasetOf(scale: number): Dataset {
  const nodes = Math.max(1, Math.round(NODES * scale))
  const containers = nodes * CONTAINERS_PER_NODE
  return { nodes, containers, namespaces: Math.max(1, Math.round(containers / CONTAINERS_PER_NAMESPACE)) }
}

/** From 0, as they are posted; in the database their numbers are one higher. */
export const identityOf = (n: number, { namespaces }: Dataset) => ({
  container_uid: `${podUid(n)}/app`,
  pod_uid: podUid(n),
  pod_name: `web-${n}-6d5f8b7c9-x2x4z`,
  namespace: `ns-${n % namespaces}`,
  container: 'app',
})
export const podUid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
export const nodeOf = (i: number) => `node-${i}`

const UID = `'00000000-0000-4000-8000-' || lpad((c.id - 1)::text, 12, '0')`
const NODE = `'node-' || (c.id - 1) / ${CONTAINERS_PER_NODE}`

/** Columns that minutes and folded rows share, of the container `n` in the minute `k`. The numbers are any, so that neighbors differ. */
const noise = (factor: number, below: number) => `(n * ${factor} + k) % ${below}`
/** A number for each minute, worked out once for all rows of it. */
const MINUTE = `extract(epoch from t)::bigint / 60 * 7919`
const isStalled = `n % ${STALLED_PART} = 0`
const COLUMNS: Readonly<Record<string, string>> = {
  cpu_usage_millis_avg: `${noise(37, 900)} + 0.5`,
  cpu_usage_millis_max: `${noise(41, 900)} + 900.25`,
  cpu_usage_millis_last: `${noise(43, 900)} + 0.75`,
  cpu_quota_usec: '100000',
  cpu_period_usec: '100000',
  cpu_request_millis: 'case when n % 3 = 0 then null else 500 end',
  cpu_limit_millis: '1000',
  cpu_nr_periods: '600',
  cpu_nr_throttled: noise(3, 60),
  cpu_throttled_usec: `case when n % ${THROTTLED_PART} = 1 then 20000000 else ${noise(5, 1_000_000)} end`,
  cpu_psi_some10_avg: `case when ${isStalled} then 35 else 0 end + ${noise(11, 15)} + 0.125`,
  cpu_psi_some10_max: `case when ${isStalled} then 60 else 20 end + ${noise(13, 15)} + 0.125`,
  cpu_psi_full10_avg: `${noise(17, 5)} + 0.125`,
  cpu_psi_full10_max: `${noise(19, 9)} + 0.125`,
  mem_current_avg: `300000000 + ${noise(23, 90_000_000)}`,
  mem_current_max: `400000000 + ${noise(29, 90_000_000)}`,
  mem_current_last: `300000000 + ${noise(31, 90_000_000)}`,
  mem_working_set_avg: `200000000 + ${noise(23, 90_000_000)}`,
  mem_working_set_max: `250000000 + ${noise(29, 90_000_000)}`,
  mem_working_set_last: `200000000 + ${noise(31, 90_000_000)}`,
  mem_limit: '536870912',
  mem_request: '268435456',
  mem_psi_some10_avg: `case when n % ${STALLED_PART} = 2 then 15 else 0 end + ${noise(47, 8)} + 0.125`,
  mem_psi_some10_max: `${noise(53, 30)} + 0.125`,
  mem_psi_full10_avg: `${noise(59, 3)} + 0.125`,
  mem_psi_full10_max: `${noise(61, 8)} + 0.125`,
  mem_events_high: noise(67, 4),
  mem_events_max: noise(71, 2),
  mem_oom_kill: '0',
  mem_refault: noise(73, 900),
  mem_pgmajfault: noise(79, 90),
  runq_count: noise(83, 5_000),
  runq_p50_us: noise(89, 200),
  runq_p95_us: noise(97, 2_000),
  runq_p99_us: `case when ${isStalled} then 25000 else 0 end + ${noise(101, 15_000)}`,
  runq_max_us: `${noise(103, 90_000)} + 40000`,
  runq_overflow: '0',
  runq_hist: `array[${Array.from({ length: 23 }, (_, bucket) => noise(107 + bucket, 300)).join(', ')}, 0]::bigint[]`,
}
const names = Object.keys(COLUMNS).join(', ')
const values = Object.values(COLUMNS).join(', ')

const minuteOf = (minute: string) => `select t, ${MINUTE} as k from (values (timestamp '${minute}')) t(t) offset 0`

/** Seeds what is missing up to now. */
export async function seedCompute(sql: postgres.Sql, data: Dataset, packAll: () => Promise<void>): Promise<void> {
  await sql.unsafe('set synchronous_commit = off')
  await sql.unsafe("set timezone = 'UTC'")
  const [kept] = await sql<{ is_kept: boolean }[]>`
    select (select count(*) from compute_container) = ${data.containers}::int
           and exists (select from compute_minute m
                       where m.container_id = 1
                         and m.ts > now() at time zone 'utc' - make_interval(hours => ${MAX_AGE_HOURS}::int)) as is_kept`
  if (!kept!.is_kept) await begin(sql, data)
  await makeDays(sql)
  if (!kept!.is_kept) await seedDays(sql, data)
  await seedMinutes(sql, data)
  await seedSamples(sql, data)
  await packAll()
  await sql.unsafe(`vacuum analyze ${[...TABLES, 'compute_latest', 'compute_node', 'compute_container'].join(', ')}`)
}

/** From nothing. */
async function begin(sql: postgres.Sql, { containers, namespaces }: Dataset): Promise<void> {
  await sql.unsafe(`truncate ${TABLES.join(', ')}, compute_latest, compute_node, compute_container restart identity`)
  await sql.unsafe(`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select ${UID} || '/app', ${UID}, 'ns-' || (c.id - 1) % ${namespaces}, 'web-' || c.id - 1 || '-6d5f8b7c9-x2x4z', 'app', ${NODE}
    from generate_series(1, ${containers}) c(id)
    order by c.id`)
  await sql`
    update compute_fold set folded_until = '-infinity', closed_until = '-infinity', counted_until = '-infinity',
                            count_closed_until = '-infinity', pack_after = '-infinity'`
}

export async function makeDays(sql: postgres.Sql): Promise<void> {
  const days = await sql<{ text: string }[]>`
    select format('create table if not exists %I partition of %I for values from (%L) to (%L)',
                  t.name || to_char(d.day, '_YYYYMMDD'), t.name, d.day::date, d.day::date + 1) as text
    from unnest(${`{${TABLES}}`}::text::text[]) t(name)
    cross join generate_series(date_trunc('day', now() at time zone 'utc') - make_interval(days => ${DAYS}::int),
                               date_trunc('day', now() at time zone 'utc') + interval '1 day', interval '1 day') d(day)`
  for (const { text } of days) await sql.unsafe(text)
}

const MINUTES_FROM = `date_trunc('hour', now() at time zone 'utc' - interval '${MINUTE_HOURS} hours')`

/** Days before the last: rolled up, a minute in five is as large as five. */
async function seedDays(sql: postgres.Sql, { containers }: Dataset): Promise<void> {
  const times = await sql<{ minute: string }[]>`
    select t::text as minute
    from generate_series(date_trunc('hour', now() at time zone 'utc' - make_interval(days => ${DAYS}::int)),
                         ${sql.unsafe(MINUTES_FROM)} - interval '5 minutes', interval '5 minutes') t`
  for (const { minute } of times) await sql.unsafe(minutesAt(minute, containers))
}

const minutesAt = (minute: string, containers: number) => `
      insert into compute_minute (container_id, ts, resolution_secs, ${names})
      select n, t, 60, ${values} from (${minuteOf(minute)}) m, generate_series(1, ${containers}) n`

/** As agents post them: a minute at a time. Whoever comes last before a reader does is at most a minute old. */
export async function seedMinutes(sql: postgres.Sql, { containers }: Dataset): Promise<void> {
  const minutes = await sql<{ minute: string; has_pairs: boolean }[]>`
    select t.minute::text as minute, t.minute > now() at time zone 'utc' - make_interval(hours => ${PAIR_HOURS}::int) as has_pairs
    from (select max(m.ts) as ts from compute_minute m where m.container_id = 1) m
    cross join generate_series(greatest(${sql.unsafe(MINUTES_FROM)}, date_trunc('minute', m.ts) + interval '1 minute'),
                               now() at time zone 'utc' - interval '1 second', interval '1 minute') t(minute)`
  for (const { minute, has_pairs } of minutes) {
    await sql.unsafe(minutesAt(minute, containers))
    // Two or three of each container: neighbors on its node, and a unit of the system.
    if (has_pairs)
      await sql.unsafe(`
        insert into compute_contention (victim_id, ts, culprit_cgroup_id, culprit_kind, culprit_ref, culprit_container_uid, count, wait_ns, is_heaviest)
        select n, t, c.id, case when p = 3 then 'system' else 'pod' end,
               case when p = 3 then 'system.slice/containerd.service' else 'ns-0/web-' || c.id - 1 || '-6d5f8b7c9-x2x4z/app' end,
               case when p < 3 then ${UID} || '/app' end, ${noise(109, 900)}, (1000000 + ${noise(113, 9_000_000)}) * case when p = 1 then 8 else 1 end, p = 1
        from (${minuteOf(minute)}) m
        cross join generate_series(1, ${containers}) n
        cross join lateral (
          select p, (n - 1) / ${CONTAINERS_PER_NODE} * ${CONTAINERS_PER_NODE} + 1 + (n + p * 7) % ${CONTAINERS_PER_NODE} as id
          from generate_series(1, 2 + n % 2) p) c`)
  }
}

/** As long as what is posted: rows take the place of others of their size. */
const BLAME = JSON.stringify(
  [7, 8, 9].map((n) => ({
    ...{ cgroup_id: 4_711, kind: 'pod', ref: `ns-0/web-${n}-6d5f8b7c9-x2x4z/app` },
    ...{ container_uid: `${podUid(n)}/app`, count: 90, wait_ns: 800_000_000 },
  })),
)

async function seedSamples(sql: postgres.Sql, { nodes, containers, namespaces }: Dataset): Promise<void> {
  await sql.unsafe(`
    insert into compute_node (node, ts, interval_ms, ctxt_per_sec, compute_enabled, compute_supported, contention_loaded, cpu_some10, cpu_full10, mem_some10,
                              mem_full10, cpu_cores, memory_bytes, bpf_runq_enqueued, bpf_runq_hist, bpf_pair, unknown_blame_share, updated_at)
    select 'node-' || i, now() at time zone 'utc', 5000, 1200.5, true, true, true, 10.5, 1.25, case when i % ${SHORT_PART} = 0 then 9 else 1 end,
           0.5, 16, 68719476736, 11, 12, 13, 0.125, now() at time zone 'utc'
    from generate_series(0, ${nodes - 1}) i
    on conflict (node) do update set updated_at = excluded.updated_at, mem_some10 = excluded.mem_some10`)
  await sql.unsafe(`
    insert into compute_latest (container_uid, pod_uid, namespace, pod_name, container, node, cgroup_id, ts, interval_ms, cpu_usage_millis, cpu_quota_usec,
                                cpu_period_usec, cpu_request_millis, cpu_limit_millis, cpu_nr_periods, cpu_nr_throttled, cpu_throttled_usec, cpu_psi_some10,
                                cpu_psi_full10, mem_current, mem_working_set, mem_limit, mem_request, mem_psi_some10, mem_psi_full10, mem_events_high,
                                mem_events_max, mem_oom_kill, mem_refault, mem_pgmajfault, runq_count, runq_p50_us, runq_p95_us, runq_p99_us, runq_max_us,
                                runq_overflow, blame, blame_omitted, blame_omitted_wait_ns, updated_at)
    select ${UID} || '/app', ${UID}, 'ns-' || (c.id - 1) % ${namespaces}, 'web-' || c.id - 1 || '-6d5f8b7c9-x2x4z', 'app', ${NODE}, c.id,
           now() at time zone 'utc', 5000, 500.5, 100000, 100000, 500, 1000, 50, 5, 40000, 12.5, 2.25, 300000000, 200000000, 536870912, 268435456, 1.5, 0.5,
           3, 2, 0, 70, 9, 400, 90, 900, 1900, 4000, 0,
           '${BLAME}',
           0, 0, now() at time zone 'utc'
    from generate_series(1, ${containers}) c(id)
    order by c.id
    on conflict (container_uid) do nothing`)
}
