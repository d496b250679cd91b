/** Reads the versions of the profiles of workloads at two times (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { hashOfPart } from '../../profile/versions/index.ts'
import type { VersionAt, VersionRecord } from '../confinement.ts'
import { isOf, type OfEach, ofEach, WORKLOADS, type WorkloadName, workloadsJson } from './workloads.ts'

interface Row {
  readonly n: number
  readonly from: VersionAt | null
  readonly to: VersionAt | null
  readonly oldest: number | null
}

/** Versions of a workload that are looked at; `PROFILE_VERSIONS_MAX_PER_WORKLOAD` keeps fewer. */
const MAX_VERSIONS = 10_000

/** The pod security of a version from a time when no container was current, as between two runs of a job. */
const EMPTY = hashOfPart({ level: null, pod: null, containers: {} })

const version = (v: string) => `
    left join lateral (
      select ${v}.revision, ${v}.created_at, ${v}.snapshot, ${v}.dimension_hashes ->> 'podSecurity' as hash,
             ${v}.dimension_hashes ->> 'syscalls' as syscalls_hash
      from workload_profile_version ${v}
      where ${isOf(v)} and ${v}.cluster_id = 'primary' and ${v}.revision = k.${v}_revision
      offset 0) ${v} on true`

const shown = (v: string) => `
         case
           when ${v}.revision is null then null
           when (older.hash, older.syscalls_hash) is distinct from (newer.hash, newer.syscalls_hash) then (
             select json_build_object('revision', ${v}.revision, 'createdAt', wire_time(${v}.created_at),
                                      'podSecurity', s."podSecurity", 'seccompProfile', s.syscalls -> 'cr',
                                      'isSeccompUnknown', json_typeof(s.syscalls -> 'syscalls') = 'null',
                                      'isEmpty', ${v}.hash = '${EMPTY}')
             from json_to_record(${v}.snapshot) s("podSecurity" json, syscalls json))
           else json_build_object('revision', ${v}.revision, 'createdAt', wire_time(${v}.created_at),
                                  'isEmpty', ${v}.hash = '${EMPTY}')
         end`

const READ = fixed<Row[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text::json as workloads, $3::text::timestamp as since,
           $4::text::timestamp as until),
  ${WORKLOADS},
  pairs as materialized (
    select k.n, k.kind, k.name, min(v.revision) as oldest,
           coalesce(max(v.revision) filter (where v.created_at <= a.since and not v.is_empty),
                    max(v.revision) filter (where v.created_at <= a.since)) as older_revision,
           coalesce(max(v.revision) filter (where v.created_at <= a.until and not v.is_empty),
                    max(v.revision) filter (where v.created_at <= a.until)) as newer_revision
    from asked a
    cross join workloads k
    cross join lateral (
      select v.revision, v.created_at, v.dimension_hashes ->> 'podSecurity' = '${EMPTY}' as is_empty
      from workload_profile_version v
      where ${isOf('v')} and v.cluster_id = 'primary'
      order by v.revision desc
      limit ${MAX_VERSIONS}) v
    group by k.n, k.kind, k.name)
  select k.n, k.oldest, ${shown('older')} as "from", ${shown('newer')} as "to"
  from asked a
  cross join pairs k${version('older')}${version('newer')}`)

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
