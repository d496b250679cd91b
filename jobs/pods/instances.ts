import type { Sql } from '../../lib/db/index.ts'
import { type Batch, inRestedBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

const MAX_BATCHES = 200
/** Rows that one statement reads. */
const MAX_READ_AT_ONCE = 2_000
/** The worst contributions of a workload stay: those that its capture lists. */
const KEPT_OF_WORKLOAD = 20

const isBefore = (sql: Sql, time: ReturnType<Sql>, days: number) => sql`
    ${time} < now() at time zone 'utc' - make_interval(days => ${days})`

/** The rank of a contribution, as `workload_capture` computes it: entries that wait under its name make it unknown. */
const rank = (sql: Sql, row: ReturnType<Sql>) => sql`
    contribution_rank(${row}, exists (
      select from unattributed_syscalls u
      where u.pod_name = ${row}.pod_name and u.pod_namespace in ('', ${row}.pod_namespace) and not u.is_ambiguous))`

/** Whether the capture of a workload lists the contribution of instance `i`, or would if better ones went. */
const isKept = (sql: Sql) => sql`
    exists (
      select from syscall_contribution c
      where c.pod_name = i.pod_name and c.pod_namespace = i.pod_namespace and c.instance = i.instance
            and ${rank(sql, sql`c`)} is not null
        and (select count(*)
             from (select from syscall_contribution o
                   where o.pod_namespace = c.pod_namespace and o.workload_kind = c.workload_kind
                         and o.workload_name = c.workload_name
                     and (-${rank(sql, sql`o`)}, o.pod_name, o.instance) < (-${rank(sql, sql`c`)}, c.pod_name,
                         c.instance)
                   limit ${KEPT_OF_WORKLOAD}) o) < ${KEPT_OF_WORKLOAD})`

/**
 * Deletes the instances of pods that are gone for `days`, with their contributions. The worst contributions of each
 * workload stay for good: the deletion of a pod must not make a capture look more complete than it was. Rows locked by
 * another session are skipped.
 */
export function deleteInstances({ db, signal }: JobContext, days: number): Promise<Pass> {
  let after = { pod: '', namespace: '', instance: '' }
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<
        { is_held: boolean; rows: number; pod: string | null; namespace: string | null; instance: string | null }[]
      >`
  with ${held(sql, 'dead-pod-retention')},
  looked_at as materialized (
    select i.pod_name, i.pod_namespace, i.instance, i.last_seen
    from pod_instance i
    where (select is_held from held)
      and (i.pod_name, i.pod_namespace, i.instance)
        > (${after.pod}::text collate "C", ${after.namespace}::text collate "C", ${after.instance}::text collate "C")
    order by i.pod_name, i.pod_namespace, i.instance
    limit ${MAX_READ_AT_ONCE}),
  unused as materialized (
    select i.pod_name, i.pod_namespace, i.instance from looked_at i where ${isBefore(sql, sql`i.last_seen`, days)}
           and not ${isKept(sql)}),
  locked as materialized (
    select i.pod_name, i.pod_namespace, i.instance
    from unused u
    cross join lateral (
      select i.* from pod_instance i
      where i.pod_name = u.pod_name and i.pod_namespace = u.pod_namespace and i.instance = u.instance
        and ${isBefore(sql, sql`i.last_seen`, days)}
      for update skip locked) i),
  contributions as (
    delete from syscall_contribution c using locked l
    where c.pod_name = l.pod_name and c.pod_namespace = l.pod_namespace and c.instance = l.instance),
  deleted as (
    delete from pod_instance i using locked l
    where i.pod_name = l.pod_name and i.pod_namespace = l.pod_namespace and i.instance = l.instance
    returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows, l.pod_name as pod, l.pod_namespace as namespace,
         l.instance
  from held h
  left join (select l.* from looked_at l order by l.pod_name, l.pod_namespace, l.instance offset ${MAX_READ_AT_ONCE - 1}
             limit 1) l on true`,
    )
    const { is_held, rows, pod, namespace, instance } = batch!
    if (pod !== null) after = { pod, namespace: namespace!, instance: instance! }
    return { isHeld: is_held, rows, isLast: pod === null }
  })
}

/** Waiting syscalls of a name with a contribution stay as long as that contribution, which they make unknown. */
const isAwaited = (sql: Sql) => sql`
    not u.is_ambiguous and exists (select from syscall_contribution c where c.pod_name = u.pod_name
                                   and u.pod_namespace in ('', c.pod_namespace))`

/** Deletes syscalls without a known sender for which nothing more was sent for `days`. */
export function deleteUnattributed({ db, signal }: JobContext, days: number): Promise<Pass> {
  let after = { pod: '', namespace: '', ambiguous: false }
  let isFirst = true
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<
        { is_held: boolean; rows: number; pod: string | null; namespace: string | null; ambiguous: boolean | null }[]
      >`
  with ${held(sql, 'dead-pod-retention')},
  looked_at as materialized (
    select u.pod_name, u.pod_namespace, u.is_ambiguous, u.sent_at, u.received_at
    from unattributed_syscalls u
    where (select is_held from held)
      and (${isFirst}::boolean
           or (u.pod_name, u.pod_namespace, u.is_ambiguous)
              > (${after.pod}::text collate "C", ${after.namespace}::text collate "C", ${after.ambiguous}::boolean))
    order by u.pod_name, u.pod_namespace, u.is_ambiguous
    limit ${MAX_READ_AT_ONCE}),
  locked as materialized (
    select u.pod_name, u.pod_namespace, u.is_ambiguous
    from looked_at e
    cross join lateral (
      select u.* from unattributed_syscalls u
      where u.pod_name = e.pod_name and u.pod_namespace = e.pod_namespace and u.is_ambiguous = e.is_ambiguous
        and ${isBefore(sql, sql`greatest(u.sent_at, u.received_at)`, days)} and not (${isAwaited(sql)})
      for update skip locked) u
    where ${isBefore(sql, sql`greatest(e.sent_at, e.received_at)`, days)}),
  deleted as (
    delete from unattributed_syscalls u using locked l
    where u.pod_name = l.pod_name and u.pod_namespace = l.pod_namespace and u.is_ambiguous = l.is_ambiguous
    returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows, l.pod_name as pod, l.pod_namespace as namespace,
         l.is_ambiguous as ambiguous
  from held h
  left join (select l.* from looked_at l order by l.pod_name, l.pod_namespace,
             l.is_ambiguous offset ${MAX_READ_AT_ONCE - 1} limit 1) l on true`,
    )
    const { is_held, rows, pod, namespace, ambiguous } = batch!
    isFirst = false
    if (pod !== null) after = { pod, namespace: namespace!, ambiguous: ambiguous! }
    return { isHeld: is_held, rows, isLast: pod === null }
  })
}

/** Returns how many rows of both tables a pass would delete. */
export async function countInstances({ db }: Pick<JobContext, 'db'>, days: number): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from pod_instance i where ${isBefore(sql, sql`i.last_seen`, days)}
          and not ${isKept(sql)})
       + (select count(*)::int from unattributed_syscalls u
          where ${isBefore(sql, sql`greatest(u.sent_at, u.received_at)`, days)} and not (${isAwaited(sql)})) as rows`,
  )
  return row!.rows
}
