/** The fields of a flow that the list shows. The detail reads all fields. */
import type { components } from '../../api/schema.d.ts'

type Item = components['schemas']['FlowPage']['items'][number]
export type Side = NonNullable<Item['from']>
export type WholeFlow = Required<Item>

export const LIST_FIELDS = [
  'uuid',
  'pod_name',
  'pod_namespace',
  'pod_ip',
  'ip_protocol',
  'traffic_type',
  'traffic_in_out_ip',
  'traffic_in_out_port',
  'decision',
  'time_stamp',
  'from',
  'to',
] as const

export type Flow = Pick<WholeFlow, (typeof LIST_FIELDS)[number]>

/** The side whose agent reported the flow; null if the flow has no direction. */
export function seenBy({ traffic_type }: Pick<Flow, 'traffic_type'>): 'from' | 'to' | null {
  return traffic_type === 'EGRESS' ? 'from' : traffic_type === 'INGRESS' ? 'to' : null
}

/** Live flows above those of the list, without duplicates and with the latest updates. */
export function together(
  live: readonly Flow[],
  listed: readonly Flow[],
  updates: ReadonlyMap<string, Flow>,
): readonly Flow[] {
  if (live.length === 0 && updates.size === 0) return listed
  const uuids = new Set(live.map(({ uuid }) => uuid))
  return [...live, ...listed.filter(({ uuid }) => !uuids.has(uuid)).map((flow) => updates.get(flow.uuid) ?? flow)]
}
