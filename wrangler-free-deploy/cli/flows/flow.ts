/** Flows as rows. */
import type { Column } from '../output/cell.ts'
import type { View } from '../output/show.ts'
import { momentText, type Side, sideText, unstampedText } from './text.ts'

export interface Flow {
  readonly uuid: string
  readonly time_stamp: string
  readonly decision: string | null
  readonly traffic_type: string | null
  readonly ip_protocol: string | null
  readonly pod_namespace: string | null
  readonly pod_name: string | null
  readonly drop_cause: string | null
  readonly syn_retries: number | null
  readonly from: FlowSide
  readonly to: FlowSide
}
interface FlowSide extends Side {
  readonly port: string | null
}

/** The facts of an answer beside its flows. */
export interface FlowFacts {
  readonly nextAfter: string | null
  readonly observedSince: string | null
  readonly unstamped: number
}
export interface FlowPage extends FlowFacts {
  readonly items: readonly Flow[]
}

/** The agent of the side that opened the connection reports it as egress. */
const seenBy = ({ traffic_type }: Flow): string | null =>
  traffic_type === 'EGRESS' ? 'from' : traffic_type === 'INGRESS' ? 'to' : null

const reporterOf = ({ pod_namespace, pod_name }: Flow): string | null =>
  pod_name === null ? null : pod_namespace === null ? pod_name : `${pod_namespace}/${pod_name}`

export const flowColumns: readonly Column<Flow>[] = [
  { header: 'TIME', of: (flow) => flow.time_stamp, isTime: true },
  { header: 'VERDICT', of: (flow) => flow.decision, colourOf: (flow) => (flow.decision === 'DROP' ? 'red' : null) },
  { header: 'FROM', of: (flow) => sideText(flow.from) },
  { header: 'TO', of: (flow) => sideText(flow.to) },
  { header: 'PORT', of: (flow) => flow.to.port },
  { header: 'PROTO', of: (flow) => flow.ip_protocol },
  { header: 'SEEN BY', of: seenBy },
  { header: 'REPORTED BY', of: reporterOf, isWide: true },
  { header: 'FROM KIND', of: (flow) => flow.from.kind, isWide: true },
  { header: 'FROM WORKLOAD', of: (flow) => flow.from.workload, isWide: true },
  { header: 'FROM IP', of: (flow) => flow.from.ip, isWide: true },
  { header: 'TO KIND', of: (flow) => flow.to.kind, isWide: true },
  { header: 'TO WORKLOAD', of: (flow) => flow.to.workload, isWide: true },
  { header: 'TO IP', of: (flow) => flow.to.ip, isWide: true },
  { header: 'DROP CAUSE', of: (flow) => flow.drop_cause, isWide: true },
  { header: 'SYN RETRIES', of: (flow) => flow.syn_retries, isWide: true },
  { header: 'UUID', of: (flow) => flow.uuid, isWide: true },
]

/** A flow of a stream that is followed. */
export interface FollowedFlow extends Flow {
  /** It was told before, and more became known of it. */
  readonly update: boolean
}

/** Widths that fit most of the rows to come. */
const LIVE_WIDTHS: Readonly<Record<string, number>> = { FROM: 32, TO: 32, PORT: 5, PROTO: 5 }

export const followedColumns: readonly Column<FollowedFlow>[] = [
  flowColumns[0]!,
  { header: 'EVENT', of: ({ update }) => (update ? 'update' : 'new'), minWidth: 'update'.length },
  ...flowColumns.slice(1).map((column) => ({ ...column, minWidth: LIVE_WIDTHS[column.header] ?? 0 })),
]

export const flowFactsText = ({ observedSince = null, unstamped = 0 }: Partial<FlowFacts>): string[] => [
  observedSince === null ? 'no flow was ever stored' : `flows are kept since ${momentText(observedSince)}`,
  ...unstampedText(unstamped),
]

export const flowView: View<FlowPage, Flow> = {
  rowsOf: ({ items }) => items,
  columns: flowColumns,
  nameOf: ({ uuid }) => uuid,
  together: (before, page) => ({ ...page, items: [], unstamped: before.unstamped + page.unstamped }),
  said: flowFactsText,
}
