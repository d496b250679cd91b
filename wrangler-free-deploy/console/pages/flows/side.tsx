/** A side of a flow as a link: its workload, or otherwise its address or name. */
import { Workload } from '../../parts/text.tsx'
import { href } from '../../place.ts'
import type { Flow, Side } from './flow.ts'

export interface WorkloadName {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

/** The workload of a side; null unless the side is a pod whose workload is known. */
export function workloadOf({ namespace, workload }: Side): WorkloadName | null {
  const slash = workload?.indexOf('/') ?? -1
  if (namespace === null || workload === null || slash < 0) return null
  return { namespace, kind: workload.slice(0, slash), name: workload.slice(slash + 1) }
}

/** Link to all flows of the side, by the most specific name that is known. */
export function flowsOf({ kind, namespace, name, ip }: Side): string {
  if ((kind === 'pod' || kind === 'service') && namespace !== null && name !== null)
    return href(['flows'], { [kind]: `${namespace}/${name}` })
  return href(['flows'], { ip: ip ?? '' })
}

export function sideText(side: Side): string {
  const workload = workloadOf(side)
  if (workload !== null) return `${workload.namespace}/${workload.name}`
  if (side.name !== null && side.kind !== 'node')
    return side.namespace === null ? side.name : `${side.namespace}/${side.name}`
  return side.ip ?? 'not known'
}

export function SideLink({ side }: { side: Side }) {
  const workload = workloadOf(side)
  if (workload !== null) return <Workload {...workload} />
  const { kind, namespace, name, ip } = side
  const isNamed = name !== null && kind !== 'node'
  if (!isNamed && ip === null) return <span class="faint">not known</span>
  return (
    <a href={flowsOf(side)} title={isNamed ? `${namespace ?? ''}/${name}, ${ip ?? 'address not known'}` : undefined}>
      {isNamed ? (
        <>
          {namespace !== null && (
            <span class="faint">
              <bdi>{namespace}</bdi>/
            </span>
          )}
          <bdi>{name}</bdi>
        </>
      ) : (
        <bdi>{ip}</bdi>
      )}{' '}
      <span class="kind">{kind ?? ''}</span>
    </a>
  )
}

/** For a flow without a direction the two sides are the pod and its peer. */
export function sidesOf(flow: Flow): { from: Side; to: Side; isDirected: boolean } {
  if (flow.traffic_type === 'EGRESS' || flow.traffic_type === 'INGRESS')
    return { from: flow.from, to: flow.to, isDirected: true }
  const none: Side = { kind: null, namespace: null, name: null, workload: null, ip: null, port: null }
  return {
    from: { ...none, kind: 'pod', namespace: flow.pod_namespace, name: flow.pod_name, ip: flow.pod_ip },
    to: { ...none, ip: flow.traffic_in_out_ip, port: flow.traffic_in_out_port },
    isDirected: false,
  }
}
