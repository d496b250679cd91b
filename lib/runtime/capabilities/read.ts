/** Reads the capabilities of a workload with their evidence (docs/contract.md#capabilities). */
import { fixed, type Gate } from '../../db/index.ts'
import { byContainer } from '../../images/by-container.ts'
import { type ContainerFacts, judge, type RunningDigest, type SeenChecks } from './evidence.ts'
import type { WorkloadCapabilities } from './record.ts'

/** Rows of checks that are read; a workload with more has no evidence. */
export const MAX_ROWS = 5_000
/** Rows of the inventory that are read, the running ones first; with more running ones there is no evidence. */
export const MAX_INVENTORY_ROWS = 256
/** The read budget is charged this for each row of checks, and for 200 more. */
export const ROW_BYTES = 512
export const MORE_ROWS = 200

interface CapabilityQuestion {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly windowHours: number
  /** Seconds after which a container of the inventory no longer runs, unless its pod lives. */
  readonly runningWindowSecs: number
  /** Days that checks are kept after they were last reported; 0 keeps them for ever. */
  readonly retentionDays: number
}

interface InventoryRow {
  readonly container: string
  readonly digest: string
  readonly is_running: boolean
  readonly is_privileged: boolean
  readonly is_ephemeral: boolean
  /** Of the first row of a container, else null. */
  readonly added: readonly string[] | null
  readonly observed_since: string | null
  readonly reason: RunningDigest['reason']
  readonly reason_detail: RunningDigest['reasonDetail']
}

interface ChecksRow extends SeenChecks {
  readonly container: string
}

interface Found {
  readonly inventory: readonly InventoryRow[]
  readonly checks: readonly ChecksRow[]
  readonly has_more_checks: boolean
}

// The checks are summed here, so that the rows of many digests are not sent.
const READ = fixed<[Found]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as workload_kind, $3::text as workload_name, $4::integer as window_hours,
           $5::integer as running_secs, retention_start($6::integer) as retention_start),
  inventory as materialized (
    select w.*
    from asked a
    cross join lateral (
      select i.container_name, i.image_digest, i.container_kind, i.security_context, i.last_seen,
             is_running(i, a.running_secs) as is_running
      from workload_container i
      where i.pod_namespace = a.namespace and i.workload_kind = a.workload_kind
        and i.workload_name = a.workload_name and i.cluster_id = 'primary'
      order by is_running desc, i.last_seen desc, i.container_name, i.image_digest
      limit ${MAX_INVENTORY_ROWS + 1}) w),
  coverage as materialized (
    select c.*
    from asked a
    cross join lateral capability_coverage_of(
      'primary', a.namespace, a.workload_kind, a.workload_name, null, null, a.window_hours) c
    where exists (select from inventory i where i.is_running)),
  checks as materialized (
    select c.*
    from asked a
    cross join lateral (
      select r.container_name, r.capability, r.granted, r.probed, r.count, r.first_seen, r.last_seen
      from runtime_capability r
      where r.pod_namespace = a.namespace and r.workload_kind = a.workload_kind
        and r.workload_name = a.workload_name and r.cluster_id = 'primary' and r.last_reported >= a.retention_start
      order by r.container_name, r.image_digest, r.capability, r.granted, r.probed
      limit ${MAX_ROWS + 1}) c)
  select
    (select coalesce(json_agg(json_build_object(
              'container', i.container_name,
              'digest', i.image_digest,
              'is_running', i.is_running,
              'is_privileged', coalesce(i.security_context -> 'privileged' = 'true', false),
              'is_ephemeral', i.container_kind = 'ephemeral',
              'added', case when i.place = 1 then i.security_context -> 'capabilitiesAdd' end,
              'observed_since', wire_time(c.observed_since),
              'reason', f.reason,
              'reason_detail', case when i.is_running then coverage_detail(
                'primary', (select a.namespace from asked a), (select a.workload_kind from asked a),
                (select a.workload_name from asked a), i.container_name, i.image_digest,
                (select a.window_hours from asked a), f.reason) end)
            order by i.container_name, i.place), '[]')
     from (
       select i.*, row_number() over (
         partition by i.container_name order by i.is_running desc, i.last_seen desc, i.image_digest) as place
       from inventory i) i
     left join coverage c on i.is_running and c.container_name = i.container_name
                             and c.image_digest = i.image_digest
     cross join lateral (
       select case when c.container_name is null then 'no_runtime_data' else c.reason end as reason) f) as inventory,
    (select coalesce(json_agg(json_build_object(
              'container', s.container_name,
              'capability', s.capability,
              'granted', s.granted,
              'probed', s.probed,
              'count', s.count,
              'firstSeen', wire_time(s.first_seen),
              'lastSeen', wire_time(s.last_seen))
            order by s.container_name, s.capability), '[]')
     from (
       select c.container_name, c.capability, c.granted, c.probed,
              least(sum(c.count), ${Number.MAX_SAFE_INTEGER}) as count,
              min(c.first_seen) as first_seen, max(c.last_seen) as last_seen
       from checks c
       group by c.container_name, c.capability, c.granted, c.probed) s) as checks,
    (select count(*) > ${MAX_ROWS} from checks) as has_more_checks`)

/** The capabilities of each container of a workload; no containers for an unknown one. */
export async function readCapabilities(gate: Gate, question: CapabilityQuestion): Promise<WorkloadCapabilities> {
  const { namespace, kind, name, windowHours, runningWindowSecs, retentionDays } = question
  const [found] = await gate((sql) => READ(sql, namespace, kind, name, windowHours, runningWindowSecs, retentionDays))
  return { windowHours, containers: factsOf(found!).map(judge) }
}

/** The facts of each container, in the order of the inventory. */
function factsOf({ inventory, checks, has_more_checks }: Found): ContainerFacts[] {
  const isTruncated =
    has_more_checks || (inventory.length > MAX_INVENTORY_ROWS && inventory.every(({ is_running }) => is_running))
  const checksOf = byContainer(checks)
  return [...byContainer(inventory)].map(([container, rows]) => ({
    container,
    running: rows.filter(({ is_running }) => is_running).map(runningDigest),
    added: rows[0]!.added ?? [],
    checks: checksOf.get(container) ?? [],
    isTruncated,
  }))
}

const runningDigest = (row: InventoryRow): RunningDigest => ({
  digest: row.digest,
  isPrivileged: row.is_privileged,
  isEphemeral: row.is_ephemeral,
  observedSince: row.observed_since,
  reason: row.reason,
  reasonDetail: row.reason_detail,
})
