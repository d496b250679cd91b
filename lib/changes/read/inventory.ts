/** Reads the images that workloads ran, from the inventory (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import type { ImageRecord, RanRow } from '../images.ts'
import { isOf, type OfEach, ofEach, WORKLOADS, type WorkloadName, workloadsJson } from './workloads.ts'

/** Rows of a workload that are read; one with more is `too_many`. */
const MAX_ROWS = 256
/** A row that did not change is rewritten so often: the containers of one pod may end so far apart. */
const REWRITTEN_SECS = 300

const READ = fixed<{ n: number; rows: RanRow[]; kept_since: string | null }[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text::json as workloads, make_interval(secs => $3::integer) as shown_for,
           now() at time zone 'utc' as moment, nullif(retention_start($4::integer), '-infinity') as kept_since),
  ${WORKLOADS}
  select k.n, json_agg(json_build_object(
           'container', w.container_name, 'digest', w.image_digest, 'imageRef', w.image_ref,
           'firstSeen', wire_time(w.first_seen),
           'until', wire_time(case when w.is_newest then w.together else w.until end))) as rows,
         wire_time(min(a.kept_since)) as kept_since
  from asked a
  cross join workloads k
  cross join lateral (
    select w.*,
           row_number() over (partition by w.container_name order by w.until desc, w.image_digest) = 1 as is_newest,
           max(w.until) over (order by w.until range between current row
                                                 and interval '${REWRITTEN_SECS} seconds' following) as together
    from (
      select w.*, case
               when w.last_pod_name is not null and is_pod_alive(w.pod_namespace, w.last_pod_name) then a.moment
               else least(a.moment, w.last_seen + a.shown_for) end as until
      from workload_container w
      where ${isOf('w')} and w.cluster_id = 'primary'
      order by w.container_name, w.image_digest
      limit ${MAX_ROWS + 1}) w) w
  group by k.n`)

interface Options {
  /** Seconds for which a container counts as running after it was reported. */
  readonly runningWindowSecs: number
  readonly retentionDays: number
}

/** Reads the record of each of these workloads of a namespace. */
export async function readInventory(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadName[],
  { runningWindowSecs, retentionDays }: Options,
): Promise<OfEach<ImageRecord>> {
  const rows = await gate((sql) => READ(sql, namespace, workloadsJson(workloads), runningWindowSecs, retentionDays))
  return ofEach(
    workloads,
    rows,
    (row): ImageRecord => ({
      rows: row.rows.slice(0, MAX_ROWS),
      isCut: row.rows.length > MAX_ROWS,
      keptSince: row.kept_since,
    }),
    (): ImageRecord => ({ rows: [], isCut: false, keptSince: null }),
  )
}
