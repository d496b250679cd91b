/** The inventory of a workload as its profile reads it, and rows of it without a database. */
import type postgres from 'postgres'
import type { WorkloadKey } from '../../lib/profile/built.ts'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { digestOf } from '../support/images.ts'

const RUNNING_SECS = 900

/** The stored rows, by container; the running and newest ones first. */
export const inventoryOf = async (sql: postgres.Sql, { namespace, kind, name }: WorkloadKey) => [
  ...(await sql<InventoryRow[]>`
    select w.container_name as container, w.container_kind as kind, w.image_digest as digest, w.image_ref as "imageRef",
           w.state, w.state_reason as "stateReason", ran_as_init(w.container_kind, w.state) as "ranAsInit",
           w.last_pod_name as "lastPodName", wire_time(w.first_seen) || 'Z' as "firstSeen",
           wire_time(w.last_seen) || 'Z' as "lastSeen", is_running(w, ${RUNNING_SECS}) as "isRunning",
           w.last_seen >= now() at time zone 'utc' - make_interval(secs => ${RUNNING_SECS})
             or w.last_pod_name is not null and is_pod_alive(w.pod_namespace, w.last_pod_name) as "isCurrent",
           w.security_context as "securityContext", w.pod_security as "podSecurity"
    from workload_container w
    where w.pod_namespace = ${namespace} and w.workload_kind = ${kind} and w.workload_name = ${name}
    order by w.container_name, "isRunning" desc, w.last_seen desc, w.image_digest`),
]

/** A row of a container that runs now. */
export const rowOf = (container: string, image: string, fields: Partial<InventoryRow> = {}): InventoryRow => ({
  ...{ container, kind: 'regular', digest: digestOf(image), imageRef: `registry.test/team/${container}:v1` },
  ...{ state: 'running', stateReason: null, ranAsInit: false, lastPodName: 'web-0' },
  ...{ firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-02T00:00:00Z', isRunning: true, isCurrent: true },
  ...{ securityContext: {}, podSecurity: {} },
  ...fields,
})

/** A container that was last seen long ago. */
export const staleOf = (container: string, image: string, fields: Partial<InventoryRow> = {}) =>
  rowOf(container, image, { isRunning: false, isCurrent: false, ...fields })
