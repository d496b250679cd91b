/** Reads the two versions that a diff compares (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import type { WorkloadKey } from '../built.ts'
import type { VersionContent } from './diff.ts'

/** A version with its snapshot. */
export interface StoredContent extends VersionContent {
  readonly revision: number
  readonly contentHash: string
  readonly createdAt: string
}

interface Found {
  readonly to: StoredContent | null
  readonly from: StoredContent | null
}

// `from` and `to` may be null: the newest version, and the newest one below it.
const READ = fixed<[Found]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name, $4::integer as from_revision,
           $5::integer as to_revision),
  newer as materialized (
    select v.*
    from asked a
    cross join lateral (
      select v.*
      from workload_profile_version v
      where v.pod_namespace = a.namespace and v.workload_kind = a.kind and v.workload_name = a.name
        and v.cluster_id = 'primary' and v.revision between coalesce(a.to_revision, 1)
                                                      and coalesce(a.to_revision, 2147483647)
      order by v.revision desc
      limit 1) v),
  older as materialized (
    select v.*
    from asked a
    cross join newer n
    cross join lateral (
      select v.*
      from workload_profile_version v
      where v.pod_namespace = a.namespace and v.workload_kind = a.kind and v.workload_name = a.name
        and v.cluster_id = 'primary' and v.revision between coalesce(a.from_revision, 1)
                                                      and coalesce(a.from_revision, n.revision - 1)
      order by v.revision desc
      limit 1) v)
  select
    (select json_build_object('revision', n.revision, 'contentHash', n.content_hash,
                              'createdAt', wire_time(n.created_at) || 'Z',
                              'dimensionHashes', n.dimension_hashes, 'snapshot', n.snapshot)
     from newer n) as "to",
    (select json_build_object('revision', o.revision, 'contentHash', o.content_hash,
                              'createdAt', wire_time(o.created_at) || 'Z',
                              'dimensionHashes', o.dimension_hashes, 'snapshot', o.snapshot)
     from older o) as "from"`)

/**
 * The version `to`, null for the newest one, and the version `from`, null for the newest one below `to`; null where it
 * is not stored.
 */
export async function readPair(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  from: number | null,
  to: number | null,
): Promise<Found> {
  const [found] = await gate((sql) => READ(sql, namespace, kind, name, from, to))
  return found!
}
