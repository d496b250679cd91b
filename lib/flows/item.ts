import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { inColumns } from '../records/column-kinds.ts'
import { TrafficRow } from '../traffic/index.ts'

const text = z.string().nullable()

/** The columns of the sides: of the pod that the flow names, and of its peer. */
const OWN = {
  ...{ kind: 'own_kind', namespace: 'pod_namespace', name: 'pod_name', workload: 'own_workload', ip: 'pod_ip' },
  port: 'pod_port',
}
const PEER = {
  ...{ kind: 'shown_peer_kind', namespace: 'peer_namespace', name: 'peer_name', workload: 'peer_workload' },
  ...{ ip: 'traffic_in_out_ip', port: 'traffic_in_out_port' },
}

/** A side of a flow (docs/contract.md#flow-queries). */
const Endpoint = inColumns(
  z
    .strictObject({
      kind: z
        .enum(['pod', 'service', 'node', 'external', 'unresolved'])
        .nullable()
        .describe('`external`: a public address without a pod or service. `unresolved`: any other peer not known.'),
      namespace: text,
      name: text.describe('Of a pod or service; for a node, of the pod on its network.'),
      workload: text.describe('`Kind/name`; null where it is not known, and for all but pods.'),
      ip: text,
      port: text,
    })
    .meta({
      id: 'FlowEndpoint',
      description: 'All null where `traffic_type` does not say which side opened the connection.',
    }),
  {
    from: { by: 'traffic_type', of: { EGRESS: OWN, INGRESS: PEER } },
    to: { by: 'traffic_type', of: { EGRESS: PEER, INGRESS: OWN } },
  },
)

/** A flow with its stamps and its sides (docs/contract.md#flow-queries). */
export const FlowItem = TrafficRow.extend({
  pod_workload_kind: text.describe('The workload of the pod when the flow was seen. Null where it was not recorded.'),
  pod_workload_name: text,
  from: Endpoint,
  to: Endpoint,
}).meta({ id: 'FlowItem' })

export const ITEM_FIELDS = Object.keys(FlowItem.shape) as (keyof typeof FlowItem.shape)[]
export type ItemField = (typeof ITEM_FIELDS)[number]

/** Beside the items. */
const facts = {
  nextAfter: text.describe('The `after` of the next page; null on the last one.'),
  observedSince: wireTime
    .nullable()
    .describe('Flows of the range are kept from here on, up to the cap on those of a pod; null where none is stored.'),
  observedUntil: wireTime.describe('The end of the range, or the time of this answer.'),
  unstamped: z
    .int()
    .describe('Flows left out because it was not recorded whether the filter matches their workload, label or node.'),
}

/** The fields of an item, or those that were asked for. */
const Item = FlowItem.partial()

/** A page of `GET /flows`. */
export const FlowPage = z.strictObject({ items: z.array(Item), ...facts }).meta({ id: 'FlowPage' })

const resume = z.string().describe('Where the stream can go on: the parameter `resume`.')

/** A line of a stream of `GET /flows`. */
export const FlowLine = z
  .union([
    Item,
    Item.extend({ update: z.boolean().describe('Whether the flow is older, and more became known of it.') }),
    z
      .strictObject({
        ...{ end: z.literal(true), count: z.int().describe('Items in all.') },
        ...facts,
        resume: resume.nullable(),
      })
      .meta({ id: 'FlowStreamEnd', description: 'The last line. A stream without it was cut.' }),
    z
      .strictObject({ end: z.literal(true), count: z.int(), resume })
      .meta({ id: 'FlowFollowEnd', description: 'The last line of a followed stream: ask again with `resume`.' }),
    z
      .strictObject({ heartbeat: z.literal(true).optional(), resume })
      .meta({ id: 'FlowResume', description: 'All flows before this line were sent.' }),
  ])
  .meta({ id: 'FlowLine', description: 'A line of the stream.' })

/** The record with these fields, in their usual order. */
export const itemRecord = (fields: readonly ItemField[]): z.ZodObject =>
  z.strictObject(
    Object.fromEntries(ITEM_FIELDS.filter((one) => fields.includes(one)).map((one) => [one, FlowItem.shape[one]])),
  )

/** The record of a line of a followed stream. */
export const followedRecord = (fields: readonly ItemField[]): z.ZodObject =>
  itemRecord(fields).extend({ update: z.boolean() })

/** The columns of the sides of flows `t` that `traffic` does not have. */
export const SIDE_COLUMNS = `
    'pod' as own_kind, t.pod_workload_kind || '/' || t.pod_workload_name as own_workload,
    case when t.peer_kind is not null then t.peer_kind
         when is_public_address(t.traffic_in_out_ip) then 'external' else 'unresolved' end as shown_peer_kind,
    case when t.peer_kind = 'pod' then
      case when t.peer_workload_name is null then 'Pod/' || t.peer_name
           else t.peer_workload_kind || '/' || t.peer_workload_name end end as peer_workload`
