/** Reads the pods, the images and the newest version of a workload (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../db/index.ts'
import type { WorkloadKey } from './built.ts'
import type { InventoryRow } from './inventory.ts'
import { PODS } from './network/index.ts'
import type { Profile } from './record/profile.ts'

/** Rows of the inventory that are read, the running ones first. */
export const MAX_INVENTORY_ROWS = 256
const MAX_POD_NAMES = 20

export interface AppliedProfile {
  readonly name: string
  readonly defaultAction: string
}

export interface WorkloadFacts {
  readonly pods: Profile['workload']['pods']
  readonly inventory: readonly InventoryRow[]
  readonly isInventoryTruncated: boolean
  readonly version: Profile['version']
  /** The resource that refers to the workload, the last updated of several. */
  readonly seccompProfile: AppliedProfile | null
  /** Whether the stored flows were counted once. */
  readonly areFlowsCounted: boolean
  /** The clock of the database, in milliseconds. */
  readonly now: number
}

interface Row {
  readonly live: number
  readonly names: readonly string[]
  readonly inventory: readonly InventoryRow[]
  readonly version: Profile['version']
  readonly seccompProfile: AppliedProfile | null
  readonly areFlowsCounted: boolean
  readonly now: number
}

const FACTS = fixed<[Row]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name, $4::integer as running_secs),
  ${PODS},
  inventory as (
    select w.*
    from asked a
    cross join lateral (
      select i.*, is_running(i, a.running_secs) as is_running
      from workload_container i
      where i.pod_namespace = a.namespace and i.workload_kind = a.kind and i.workload_name = a.name
        and i.cluster_id = 'primary'
      order by is_running desc, i.last_seen desc, i.container_name, i.image_digest
      limit ${MAX_INVENTORY_ROWS + 1}) w)
  select
    (select count(*) from pods p where not p.is_dead)::float8 as live,
    (select coalesce(json_agg(p.pod_name order by p.pod_name), '[]')
     from (select p.pod_name from pods p where not p.is_dead order by p.pod_name limit ${MAX_POD_NAMES}) p) as names,
    (select coalesce(json_agg(json_build_object(
              'container', i.container_name, 'kind', i.container_kind, 'digest', i.image_digest,
              'imageRef', i.image_ref, 'state', i.state, 'stateReason', i.state_reason,
              'ranAsInit', ran_as_init(i.container_kind, i.state), 'lastPodName', i.last_pod_name,
              'firstSeen', wire_time(i.first_seen) || 'Z', 'lastSeen', wire_time(i.last_seen) || 'Z',
              'isRunning', i.is_running,
              'isCurrent', i.last_seen >= now() at time zone 'utc' - make_interval(secs => a.running_secs)
                           or i.last_pod_name is not null and is_pod_alive(i.pod_namespace, i.last_pod_name),
              'securityContext', i.security_context, 'podSecurity', i.pod_security)
            order by i.container_name, i.is_running desc, i.last_seen desc, i.image_digest), '[]')
     from asked a cross join inventory i) as inventory,
    (select json_build_object('revision', v.revision, 'contentHash', v.content_hash,
                              'createdAt', wire_time(v.created_at) || 'Z')
     from asked a
     join workload_profile_version v
       on v.pod_namespace = a.namespace and v.workload_kind = a.kind and v.workload_name = a.name
      and v.cluster_id = 'primary'
     order by v.revision desc
     limit 1) as version,
    (select json_build_object('name', c.name, 'defaultAction', c.default_action)
     from asked a
     join seccomp_cr c
       on c.namespace = a.namespace and c.workload_kind = a.kind and c.workload_name = a.name
     order by c.updated_at desc, c.name
     limit 1) as "seccompProfile",
    exists (select from flow_edge_cursor c where c.as_of is not null) as "areFlowsCounted",
    extract(epoch from clock_timestamp())::float8 * 1000 as now`)

export async function readWorkload(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  runningSecs: number,
): Promise<WorkloadFacts> {
  const [row] = await gate((sql) => FACTS(sql, namespace, kind, name, runningSecs))
  const { live, names, inventory, version, seccompProfile, areFlowsCounted, now } = row!
  return {
    pods: { live, names: [...names], truncated: live > names.length },
    inventory: inventory.slice(0, MAX_INVENTORY_ROWS),
    isInventoryTruncated: inventory.length > MAX_INVENTORY_ROWS,
    version,
    seccompProfile,
    areFlowsCounted,
    now,
  }
}
