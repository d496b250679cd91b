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

/** The key of a flow. A uuid is unique on the day of its flow only (docs/contract.md#deduplication). */
export const keyOf = ({ uuid, time_stamp }: Pick<Flow, 'uuid' | 'time_stamp'>): string => `${uuid}-${time_stamp}`

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
  const keys = new Set(live.map(keyOf))
  return [...live, ...listed.filter((flow) => !keys.has(keyOf(flow))).map((flow) => updates.get(keyOf(flow)) ?? flow)]
}
