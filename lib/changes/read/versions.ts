/** Reads the versions of the profiles of workloads at two times (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import type { VersionAt, VersionRecord } from '../confinement.ts'
import { isOf, type OfEach, ofEach, WORKLOADS, type WorkloadName, workloadsJson } from './workloads.ts'

interface Row {
  readonly n: number
  readonly from: VersionAt | null
  readonly to: VersionAt | null
  readonly oldest: number | null
}

const newestAt = (time: string) => `
    select v.revision, v.created_at, v.dimension_hashes ->> 'podSecurity' as hash,
           v.dimension_hashes ->> 'syscalls' as syscalls_hash
    from workload_profile_version v
    where ${isOf('v')} and v.cluster_id = 'primary' and v.created_at <= ${time}
    order by v.revision desc
    limit 1`

const content = (v: string) => `
         (select json_build_object(
            'revision', ${v}.revision, 'createdAt', wire_time(${v}.created_at), 'podSecurity', s.snapshot -> 'podSecurity',
            'seccompProfile', s.snapshot -> 'syscalls' -> 'cr')
          from workload_profile_version s
          where ${isOf('s')} and s.revision = ${v}.revision and s.cluster_id = 'primary')`

// Snapshots are long, so they are read only where one of the parts differs. Where none does, both sides are the same.
const READ = fixed<Row[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text::json as workloads, $3::text::timestamp as since,
           $4::text::timestamp as until),
  ${WORKLOADS},
  pairs as materialized (
    select k.n, k.kind, k.name, o.revision as oldest, f.revision as from_revision, f.created_at as from_created_at,
           t.revision as to_revision, t.created_at as to_created_at,
           (f.hash, f.syscalls_hash) is distinct from (t.hash, t.syscalls_hash) as is_changed
    from asked a
    cross join workloads k
    left join lateral (
      select v.revision from workload_profile_version v where ${isOf('v')} and v.cluster_id = 'primary'
      order by v.revision limit 1) o on true
    left join lateral (${newestAt('a.since')}) f on true
    left join lateral (${newestAt('a.until')}) t on true)
  select k.n, k.oldest,
         case when k.from_revision is not null and k.to_revision is not null then
           case when k.is_changed then ${content('f')}
                else json_build_object('revision', k.from_revision, 'createdAt', wire_time(k.from_created_at)) end
         end as "from",
         case when k.from_revision is not null and k.to_revision is not null then
           case when k.is_changed then ${content('t')}
                else json_build_object('revision', k.to_revision, 'createdAt', wire_time(k.to_created_at)) end
         end as "to"
  from asked a
  cross join pairs k
  cross join lateral (select k.from_revision as revision, k.from_created_at as created_at) f
  cross join lateral (select k.to_revision as revision, k.to_created_at as created_at) t`)

/** Reads the versions of each of these workloads of a namespace. `from` and `to` are texts of times. */
export async function readVersionRecords(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadName[],
  from: string,
  to: string,
): Promise<OfEach<VersionRecord>> {
  const rows = await gate((sql) => READ(sql, namespace, workloadsJson(workloads), from, to))
  return ofEach(
    workloads,
    rows,
    (row): VersionRecord => ({ from: row.from, to: row.to, oldestRevision: row.oldest }),
    (): VersionRecord => ({ from: null, to: null, oldestRevision: null }),
  )
}
