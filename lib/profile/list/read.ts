/** Reads a page of GET /workloads (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import { plainColumns, plainRows } from '../../records/index.ts'
import { isLive } from '../live.ts'
import { NO_SUMMARY } from '../versions/index.ts'
import { type ListQuery, writeAfter } from './query.ts'
import { ListedProfile } from './record.ts'

/** Whether the workload `t` passes the filters. The one that needs other tables comes last. */
const PASSES = `
  (t.pod_namespace, t.workload_kind, t.workload_name) > (a.after_namespace, a.after_kind, a.after_name)
  and (a.kind is null or t.workload_kind = a.kind)
  and (a.search is null or position(lower(a.search) in lower(t.workload_name)) > 0)
  and t.cluster_id = 'primary'`
const IN_ORDER = `
  order by t.pod_namespace, t.workload_kind, t.workload_name
  limit a.most`
const IS_LISTED = `
  (a.includes_gone or ${isLive('t')})`

// Both tables are read in the order of the list, each for a whole page.
const rowsOf = (isOfNamespace: string) =>
  fixed(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as status, $4::text as search,
           $5::boolean as includes_gone, $6::text as after_namespace, $7::text as after_kind, $8::text as after_name,
           $9::integer as most)
  select m.name, m.kind, m.namespace, ${plainColumns(ListedProfile, 'm')}
  from (
    select l.cluster_id, l.pod_namespace as namespace, l.workload_kind as kind, l.workload_name as name,
           l.revision, l.content_hash, l.computed_at, l.last_changed_at, f.failed_at, f.message as last_error,
           s.posture, s.dimensions, s."findingCounts" as finding_counts, s.drift
    from (
      select p.*
      from asked a
      cross join lateral (
        select t.cluster_id, t.pod_namespace, t.workload_kind, t.workload_name, t.revision, t.content_hash,
               t.computed_at, t.last_changed_at, t.summary
        from workload_profile t
        where ${isOfNamespace} ${PASSES} and (a.status is null or t.posture_status = a.status) and ${IS_LISTED}
        ${IN_ORDER}) p
      union all
      select n.*, null, null, null, null, '${JSON.stringify(NO_SUMMARY)}'::json
      from asked a
      cross join lateral (
        select t.cluster_id, t.pod_namespace, t.workload_kind, t.workload_name
        from workload_profile_failure t
        where ${isOfNamespace} ${PASSES} and (a.status is null or a.status = 'unknown')
          and not exists (
            select from workload_profile p
            where p.pod_namespace = t.pod_namespace and p.workload_kind = t.workload_kind
              and p.workload_name = t.workload_name and p.cluster_id = t.cluster_id)
          and ${IS_LISTED}
        ${IN_ORDER}) n) l
    left join workload_profile_failure f
      on f.pod_namespace = l.pod_namespace and f.workload_kind = l.workload_kind
     and f.workload_name = l.workload_name and f.cluster_id = l.cluster_id
    cross join lateral json_to_record(l.summary) s(posture json, dimensions json, "findingCounts" json, drift json)
    order by l.pod_namespace, l.workload_kind, l.workload_name
    limit (select a.most from asked a)) m`)

const ofCluster = rowsOf('')
const ofNamespace = rowsOf('t.pod_namespace = a.namespace and')

/** A page as JSON. The live profile of a workload may be newer than what is listed of it. */
export async function readList(gate: Gate, asked: ListQuery): Promise<Buffer> {
  const { namespace, kind, status, search, include_gone, limit, after } = asked
  const [fromNamespace, fromKind, fromName] = after ?? ['', '', '']
  const read = namespace === null ? ofCluster : ofNamespace
  const rows = await gate((sql) =>
    read(
      ...([sql, namespace, kind, status, search, include_gone] as const),
      ...([fromNamespace, fromKind, fromName, limit + 1] as const),
    ).raw(),
  )
  const items = rows.slice(0, limit)
  const [name, workloadKind, ofNs] = (items.at(-1) ?? []).slice(0, 3).map(String)
  const nextAfter = rows.length > limit ? writeAfter([ofNs!, workloadKind!, name!]) : null
  return Buffer.concat([
    Buffer.from('{"items":['),
    plainRows(ListedProfile, items, 3),
    Buffer.from(`],"nextAfter":${JSON.stringify(nextAfter)}}`),
  ])
}
