/** The workloads whose profiles are computed, and failures of workloads that are no more. */
import type { Database, Sql } from '../../lib/db/index.ts'
import type { WorkloadKey } from '../../lib/profile/built.ts'
import { isLive } from '../../lib/profile/live.ts'

/** A workload with its place in the order of a pass. */
export interface Candidate extends WorkloadKey {
  /** Without a live pod. */
  readonly is_gone: boolean
  /** Its newest attempt; `-infinity` if there was none. */
  readonly attempted_at: string
}

export const FIRST: Candidate = { is_gone: false, attempted_at: '-infinity', namespace: '', kind: '', name: '' }

/**
 * Workloads that the inventory, the observed syscalls or a live pod names. A live pod without a workload is one of its
 * own; it is none here unless one of the others names it.
 */
const workloads = (sql: Sql) => sql`
    select s.namespace, s.kind, s.name, not bool_or(s.is_live) as is_gone
    from (
      select w.pod_namespace as namespace, w.workload_kind as kind, w.workload_name as name, true as is_source,
             false as is_live
      from workload_container w
      where w.cluster_id = 'primary'
      union all
      select u.pod_namespace, u.workload_kind, u.workload_name, true, false from workload_syscalls u
      union all
      select p.pod_namespace, p.workload_kind, p.workload_name, true, true
      from pod p
      where not p.is_dead and p.pod_namespace is not null and is_owned(p.workload_kind, p.workload_name)
      union all
      select p.pod_namespace, 'Pod', p.pod_name, false, true
      from pod p
      where not p.is_dead and p.pod_namespace is not null and not is_owned(p.workload_kind, p.workload_name)) s
    group by s.namespace, s.kind, s.name
    having bool_or(s.is_source)`

/**
 * The next workloads to compute, at most `max`: those with a live pod first, then the one whose newest attempt is the
 * longest ago, then by key. Only those that nobody attempted since `startedAt`.
 */
export function nextCandidates(
  db: Database,
  startedAt: string,
  { is_gone, attempted_at, namespace, kind, name }: Candidate,
  max: number,
): Promise<readonly Candidate[]> {
  return db.job(
    (sql) => sql<Candidate[]>`
  select d.namespace, d.kind, d.name, d.is_gone, d.attempted_at::text
  from (
    -- A time in the future is from before the clock was set back.
    select c.*, case when greatest(p.computed_at, f.failed_at) <= now() at time zone 'utc'
                     then greatest(p.computed_at, f.failed_at) else '-infinity' end as attempted_at
    from (${workloads(sql)}) c
    left join workload_profile p
      on p.pod_namespace = c.namespace and p.workload_kind = c.kind and p.workload_name = c.name
     and p.cluster_id = 'primary'
    left join workload_profile_failure f
      on f.pod_namespace = c.namespace and f.workload_kind = c.kind and f.workload_name = c.name
     and f.cluster_id = 'primary') d
  where d.attempted_at < ${startedAt}::text::timestamp
    and (d.is_gone, d.attempted_at, d.namespace, d.kind, d.name)
        > (${is_gone}::boolean, ${attempted_at}::text::timestamp, ${namespace}::text, ${kind}::text, ${name}::text)
  order by d.is_gone, d.attempted_at, d.namespace, d.kind, d.name
  limit ${max}`,
  )
}

/** How many workloads a whole pass computes. */
export async function countCandidates(db: Database): Promise<number> {
  const [row] = await db.job((sql) => sql<{ rows: number }[]>`select count(*)::int as rows from (${workloads(sql)}) c`)
  return row!.rows
}

/** Whether nothing names the workload of a failure `f` any more. */
const hasNoSource = (sql: Sql) => sql`
    not exists (
      select from workload_container w
      where w.pod_namespace = f.pod_namespace and w.workload_kind = f.workload_kind
        and w.workload_name = f.workload_name and w.cluster_id = f.cluster_id)
    and not exists (
      select from workload_syscalls u
      where u.pod_namespace = f.pod_namespace and u.workload_kind = f.workload_kind
        and u.workload_name = f.workload_name)
    and not ${sql.unsafe(isLive('f'))}`

/** Deletes the failures of workloads that nothing names any more; resolves to their number. */
export async function pruneFailures(db: Database): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  with pruned as (delete from workload_profile_failure f where ${hasNoSource(sql)} returning 1)
  select count(*)::int as rows from pruned`,
  )
  return row!.rows
}

export async function countPrunable(db: Database): Promise<number> {
  const [row] = await db.job(
    (sql) =>
      sql<{ rows: number }[]>`select count(*)::int as rows from workload_profile_failure f where ${hasNoSource(sql)}`,
  )
  return row!.rows
}
