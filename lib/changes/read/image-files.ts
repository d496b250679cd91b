/** Reads which files ran in one image and not in another (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { type Gap, gap, type Known, known, type Reason, unknown } from '../not-known.ts'
import { UNTRACKED } from './untracked.ts'

/** Rows of files of an image that are read, over all its workloads; with more it is `too_many`. */
export const MAX_FILE_ROWS = 20_000
/** Containers of an image in the inventory that are checked for a watch; with more it is `too_many`. */
const MAX_CONTAINERS = 1_000

/** A file that ran in an image, over all its workloads. */
export interface ImageFile {
  readonly kind: 'exec' | 'lib'
  readonly path: string
  readonly pathComplete: boolean
  readonly firstSeen: string
  readonly lastSeen: string
}

export interface ImageFilesDiff {
  readonly onlyFrom: readonly ImageFile[]
  readonly onlyTo: readonly ImageFile[]
}

interface Found {
  readonly watches: readonly { readonly side: 0 | 1; readonly reason: Reason | null }[]
  readonly files: readonly (ImageFile & { readonly side: 0 | 1 })[]
}

// An image that no longer runs was watched in its time, so each instance is judged at its last heartbeat.
const READ = fixed<[Found]>(`
  with asked as materialized (
    select $1::text as older, $2::text as newer, make_interval(hours => $3::integer) as least,
           retention_start($4::integer) as retention_start, now() at time zone 'utc' as moment),
  sides as materialized (
    select s.side, s.digest collate "C" as digest
    from asked a cross join lateral (values (0, a.older), (1, a.newer)) s(side, digest)),
  rows as materialized (
    select s.side, f.*
    from asked a
    cross join sides s
    cross join lateral (
      select e.kind, e.path, e.path_hash, e.path_complete, e.first_seen, e.last_seen
      from runtime_executable e
      where e.image_digest = s.digest and e.image_digest <> '' and e.last_seen >= a.retention_start
      limit ${MAX_FILE_ROWS + 1}) f),
  instances as materialized (
    select s.side, c.exec_probe, c.lib_probe and c.mode = 'full' as has_libraries,
           c.events_dropped > 0 or c.last_drop_at is not null as has_drops, c.unsent > 0 as has_unsent, c.incomplete,
           not c.ended and c.last_heartbeat < a.moment - make_interval(secs => 3 * c.heartbeat_secs + 60)
           or not (c.start_mode = 'start' and c.covered_since = c.tracking_since)
              and c.covered_since > c.last_heartbeat - a.least as has_gap,
           c.covered_since, c.last_heartbeat, c.pod_namespace, c.workload_kind, c.workload_name, c.container_name,
           c.image_digest
    from asked a
    cross join sides s
    cross join lateral (
      select c.* from runtime_coverage c where c.image_digest = s.digest and c.image_digest <> '' offset 0) c),
  containers as materialized (
    select s.side, w.*
    from sides s
    cross join lateral (
      select w.pod_namespace, w.workload_kind, w.workload_name, w.container_name, w.cluster_id, w.image_digest
      from workload_container w
      where w.image_digest = s.digest
      order by w.pod_namespace, w.workload_name
      limit ${MAX_CONTAINERS + 1}) w),
  unwatched as materialized (
    select distinct w.side
    from asked a
    cross join containers w
    where not exists (
            select from runtime_coverage c
            where c.pod_namespace = w.pod_namespace and c.workload_kind = w.workload_kind
              and c.workload_name = w.workload_name and c.container_name = w.container_name
              and c.image_digest = w.image_digest and c.cluster_id = w.cluster_id
            offset 0)
       or ${UNTRACKED({ namespace: 'w.pod_namespace', kind: 'w.workload_kind', name: 'w.workload_name', container: 'w.container_name' })}),
  -- files that were posted before the agent knew the image or the workload, and not again since
  elsewhere as materialized (
    select distinct i.side
    from asked a
    cross join (select distinct i.side, i.pod_namespace, i.workload_kind, i.workload_name, i.container_name,
                                i.image_digest from instances i) i
    where exists (
      select from unattributed_files('primary', i.pod_namespace, i.workload_kind, i.workload_name, i.container_name,
                                     i.image_digest, a.retention_start))),
  watches as materialized (
    select s.side,
           case
             when (select count(*) from rows r where r.side = s.side) > ${MAX_FILE_ROWS}
               or (select count(*) from containers w where w.side = s.side) > ${MAX_CONTAINERS} then 'too_many'
             when i.instances = 0 then 'no_runtime_data'
             when not i.have_probe then 'probes_missing'
             when not i.have_libraries then 'libraries_not_tracked'
             when i.have_drops then 'events_dropped'
             when i.have_unsent then 'events_pending'
             when i.are_incomplete or exists (select from rows r where r.side = s.side and not r.path_complete)
               or exists (select from elsewhere e where e.side = s.side) then 'incomplete_paths'
             when i.have_gap or exists (select from unwatched u where u.side = s.side) then 'capture_gap'
             when i.watched < (select a.least from asked a) then 'watched_too_short'
           end as reason
    from sides s
    cross join lateral (
      select count(*) as instances, bool_and(i.exec_probe) as have_probe, bool_and(i.has_libraries) as have_libraries,
             bool_or(i.has_drops) as have_drops, bool_or(i.has_unsent) as have_unsent,
             bool_or(i.incomplete) as are_incomplete, bool_or(i.has_gap) as have_gap,
             max(i.last_heartbeat) - min(i.covered_since) as watched
      from instances i where i.side = s.side) i)
  select (select json_agg(w order by w.side) from watches w) as watches,
         (select coalesce(json_agg(json_build_object(
                   'side', f.side, 'kind', f.kind, 'path', f.path, 'pathComplete', f.path_complete,
                   'firstSeen', wire_time(f.first_seen), 'lastSeen', wire_time(f.last_seen))
                   order by f.kind, f.path collate "C"), '[]')
          from (
            select min(r.side) as side, r.kind, min(r.path) as path, bool_or(r.path_complete) as path_complete,
                   min(r.first_seen) as first_seen, max(r.last_seen) as last_seen
            from rows r
            where not exists (select from watches w where w.reason is not null)
            group by r.kind, r.path_hash
            having min(r.side) = max(r.side)) f) as files`)

interface Options {
  /** Hours for which an image must have been watched. */
  readonly leastHours: number
  /** Days that files are kept after they were last seen; 0 keeps them for ever. */
  readonly retentionDays: number
}

/** Compares the files of two images that were both watched; in the order of kinds and paths. */
export async function readImageFiles(
  gate: Gate,
  from: string,
  to: string,
  { leastHours, retentionDays }: Options,
): Promise<Known<ImageFilesDiff>> {
  const [found] = await gate((sql) => READ(sql, from, to, leastHours, retentionDays))
  const gaps = found!.watches.flatMap(({ side, reason }): Gap[] =>
    reason === null ? [] : [gap('files', reason, { digest: side === 0 ? from : to })],
  )
  if (gaps.length > 0) return unknown(...gaps)
  const of = (side: 0 | 1) => found!.files.filter((file) => file.side === side).map(({ side: _, ...file }) => file)
  return known({ onlyFrom: of(0), onlyTo: of(1) })
}
