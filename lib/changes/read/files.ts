/** Reads the files that workloads first ran in a range (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { ORIGINS } from '../../runtime/executables/index.ts'
import { UNSHIPPED_ORIGINS } from '../../runtime/reads/record.ts'
import type { Listed } from '../listed.ts'
import { type Gap, gap, type Known, known, type Reason, unknown } from '../not-known.ts'
import { UNTRACKED } from './untracked.ts'
import { isOf, type OfEach, ofEach, WORKLOADS, type WorkloadName, workloadsJson } from './workloads.ts'

/** A file over all images of a container, so that a release does not make all files new. */
export interface FirstFile {
  readonly container: string
  readonly kind: 'exec' | 'lib'
  readonly path: string
  readonly pathComplete: boolean
  readonly origin: (typeof ORIGINS)[number]
  readonly firstSeen: string
  readonly lastSeen: string
  /** The images in which it ran. */
  readonly digests: readonly string[]
}

interface Row {
  readonly n: number
  readonly containers: readonly {
    readonly container: string
    readonly reason: Reason | null
    readonly isSilent: boolean
  }[]
  readonly files: readonly FirstFile[]
  readonly total: number
}

const UNSHIPPED = UNSHIPPED_ORIGINS.map((origin) => `'${origin}'`).join(', ')
const RANK = `case e.origin ${ORIGINS.map((origin, rank) => `when '${origin}' then ${rank + 1}`).join(' ')} end`
const FIRST_UNSHIPPED = ORIGINS.indexOf(UNSHIPPED_ORIGINS[0]) + 1
/** Digests of a file that are listed. */
const MAX_DIGESTS = 16

/** The origins are literals, so that the index of unshipped files is used. */
const HAS_UNSHIPPED = `
      where exists (
        select from runtime_executable e
        where ${isOf('e')} and e.container_name = j.container and e.cluster_id = 'primary'
          and e.origin in (${UNSHIPPED}) and e.first_seen > a.since
        offset 0)`

/**
 * Whether a file of the container `c` is stored as that of a pod: it was posted before the agent knew the workload, and
 * not again since. `offset 0` forces a look-up for each row.
 */
const HAS_ELSEWHERE = `exists (
                 select from runtime_coverage r
                 cross join lateral (
                   select from runtime_executable e
                   where k.kind <> 'Pod' and e.pod_namespace = a.namespace and e.workload_kind = 'Pod'
                     and e.workload_name = r.pod_name and e.container_name = c.container and e.cluster_id = 'primary'
                     and e.last_seen >= a.since
                     and not exists (
                       select from runtime_executable o
                       where ${isOf('o')} and o.container_name = c.container and o.kind = e.kind
                         and o.path_start = e.path_start and o.path_hash = e.path_hash and o.cluster_id = 'primary'
                       offset 0)
                   offset 0) f
                 where ${isOf('r')} and r.container_name = c.container and r.cluster_id = 'primary'
                   and r.last_heartbeat >= a.since
                 offset 0)`

// A container is known if it was watched before the range, and each instance that lived in the range was watched since
// before it or from its own start: then a file that ran before is recorded with that time.
const statement = (containers: string, files: string) =>
  fixed<Row[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text::json as workloads, $3::text::timestamp as since,
           $4::text::timestamp as until, retention_start($5::integer) as retention_start, $6::integer as max_files,
           now() at time zone 'utc' as moment),
  ${WORKLOADS},
  instances as materialized (
    select k.n, c.container_name as container, c.covered_since <= a.since as was_before,
           c.last_heartbeat + case when c.ended then interval '0'
                                else make_interval(secs => 3 * c.heartbeat_secs + 60) end
             >= a.since as is_of_range,
           c.exec_probe, c.lib_probe and c.mode = 'full' as has_libraries,
           c.events_dropped > 0 or c.last_drop_at is not null as has_drops, c.unsent > 0 as has_unsent, c.incomplete,
           c.covered_since > a.since and not (c.start_mode = 'start' and c.covered_since = c.tracking_since) as has_gap,
           not c.ended and c.last_heartbeat < a.moment - make_interval(secs => 3 * c.heartbeat_secs + 60)
             and exists (
               select from pod p
               where p.pod_name = c.pod_name and p.pod_namespace = a.namespace and p.is_dead
                 and p.swept_at >= p.time_stamp
               offset 0) as is_silent
    from asked a
    cross join workloads k
    cross join lateral (
      select c.* from runtime_coverage c where ${isOf('c')} and c.cluster_id = 'primary' offset 0) c),
  watches as materialized (
    select i.n, i.container, bool_or(i.was_before) as was_before,
           bool_and(i.exec_probe) filter (where i.is_of_range) as have_probe,
           bool_and(i.has_libraries) filter (where i.is_of_range) as have_libraries,
           bool_or(i.has_drops) filter (where i.is_of_range) as have_drops,
           bool_or(i.has_unsent) filter (where i.is_of_range) as have_unsent,
           bool_or(i.incomplete) filter (where i.is_of_range) as are_incomplete,
           bool_or(i.has_gap) filter (where i.is_of_range) as have_gap,
           bool_or(i.is_silent) filter (where i.is_of_range) as are_silent
    from instances i
    group by i.n, i.container),
  containers as materialized (
    select w.n, w.container from watches w
    union
    select k.n, w.container_name
    from asked a
    cross join workloads k
    cross join lateral (
      select w.container_name from workload_container w
      where ${isOf('w')} and w.cluster_id = 'primary' and w.last_seen >= a.since offset 0) w
    union
    -- the inventory has no container without a digest
    select k.n, r.container
    from asked a
    cross join workloads k
    cross join lateral live_pods_of(a.namespace, k.kind, k.name) l
    cross join lateral unnest(l.running_containers) r(container)),
  judged as materialized (
    select c.n, c.container,
           case
             when a.retention_start > a.since then 'before_retention'
             when w.container is null then 'no_runtime_data'
             when not w.was_before then 'not_recorded_then'
             when not w.have_probe then 'probes_missing'
             when not w.have_libraries then 'libraries_not_tracked'
             when w.have_drops then 'events_dropped'
             when w.have_unsent then 'events_pending'
             when w.are_incomplete or ${HAS_ELSEWHERE} then 'incomplete_paths'
             when w.have_gap
               or ${UNTRACKED({ namespace: 'a.namespace', kind: 'k.kind', name: 'k.name', container: 'c.container' })}
               then 'capture_gap'
           end as reason, coalesce(w.are_silent, false) as are_silent
    from asked a
    cross join containers c
    join workloads k on k.n = c.n
    left join watches w on w.n = c.n and w.container = c.container),
  files as materialized (
    select f.*
    from (
      select j.n, j.container, f.*, count(*) over (partition by j.n) as total,
             row_number() over (partition by j.n
                                order by f.rank desc, f.first_seen desc, j.container, f.entry_kind,
                                         f.path collate "C") as place
      from asked a
      cross join (select j.n, k.kind, k.name, j.container from judged j join workloads k on k.n = j.n
                  where j.reason is null) j
      cross join lateral (select j.kind, j.name) k
      cross join lateral (
        select e.kind as entry_kind, min(e.path) as path, bool_or(e.path_complete) as path_complete,
               max(${RANK}) as rank, min(e.first_seen) as first_seen, max(e.last_seen) as last_seen,
               (array_agg(distinct e.image_digest order by e.image_digest))[:${MAX_DIGESTS}] as digests
        from runtime_executable e
        where ${isOf('e')} and e.container_name = j.container and e.cluster_id = 'primary'
          and e.last_seen >= a.retention_start
        group by e.kind, e.path_hash
        having min(e.first_seen) > a.since and min(e.first_seen) <= a.until${files}
        offset 0) f${containers}) f
    cross join asked a
    where f.place <= a.max_files)
  select k.n,
         (select coalesce(json_agg(json_build_object('container', j.container, 'reason', j.reason,
                                                     'isSilent', j.are_silent)
                                   order by j.container), '[]') from judged j where j.n = k.n) as containers,
         (select coalesce(json_agg(json_build_object(
                   'container', f.container, 'kind', f.entry_kind, 'path', f.path, 'pathComplete', f.path_complete,
                   'origin', ('{${ORIGINS}}'::text[])[f.rank], 'firstSeen', wire_time(f.first_seen),
                   'lastSeen', wire_time(f.last_seen), 'digests', f.digests) order by f.place), '[]')
          from files f where f.n = k.n) as files,
         coalesce((select f.total from files f where f.n = k.n limit 1), 0)::float8 as total
  from workloads k`)

const ALL = statement('', '')
const ONLY_UNSHIPPED = statement(HAS_UNSHIPPED, ` and max(${RANK}) >= ${FIRST_UNSHIPPED}`)

interface Range {
  /** Texts of times. */
  readonly from: string
  readonly to: string
  /** Days that files are kept after they were last seen; 0 keeps them for ever. */
  readonly retentionDays: number
  /** Files of a workload that are listed. */
  readonly most: number
  /** Only files that were in no image. */
  readonly isOnlyUnshipped: boolean
}

/** Reads the files that each of these workloads first ran in the range, the most suspicious first, then the newest. */
export async function readFirstFiles(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadName[],
  { from, to, retentionDays, most, isOnlyUnshipped }: Range,
): Promise<OfEach<Known<Listed<FirstFile>>>> {
  const read = isOnlyUnshipped ? ONLY_UNSHIPPED : ALL
  const rows = await gate((sql) => read(sql, namespace, workloadsJson(workloads), from, to, retentionDays, most))
  return ofEach(workloads, rows, filesOf, () => unknown(gap('files', 'no_runtime_data')))
}

function filesOf({ containers, files, total }: Row): Known<Listed<FirstFile>> {
  const gaps = containers.flatMap(({ container, reason }): Gap[] =>
    reason === null ? [] : [gap('files', reason, { container })],
  )
  if (containers.length === 0) return unknown(gap('files', 'no_runtime_data'))
  if (gaps.length === containers.length) return unknown(...gaps)
  // Nobody knows the files that pods ran after their agent fell silent, even if other pods are watched.
  const silent = containers.filter(({ reason, isSilent }) => reason === null && isSilent)
  const silentGaps = silent.map(({ container }) => gap('files', 'capture_gap', { container }))
  return known({ items: files, total, truncated: total > files.length }, [...gaps, ...silentGaps])
}
