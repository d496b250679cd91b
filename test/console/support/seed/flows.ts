/** Flows over the edges of the seeded cluster, written by COPY: posting 200 000 would take too long for a test. */
import { once } from 'node:events'
import type postgres from 'postgres'
import { withoutIndexes } from '../../../bench/dataset.ts'
import { type Pod, pick, uidOf, type Workload } from './cluster.ts'
import { serviceAddress } from './pods.ts'

const DAY_MS = 86_400_000
const DAYS = 29
const FIRST_EPHEMERAL_PORT = 32_768
const COPY_ROWS = 2_000
const COLUMNS = `uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip,
  traffic_in_out_port, decision, time_stamp, peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind,
  peer_workload_name, peer_resolved_at, drop_cause, syn_retries, pod_workload_kind, pod_workload_name, tx`

type Peer =
  | { readonly type: 'workload'; readonly workload: Workload }
  | { readonly type: 'service'; readonly workload: Workload; readonly ip: string }
  | { readonly type: 'node'; readonly name: string; readonly ip: string }
  | { readonly type: 'address'; readonly ip: string }

interface Edge {
  readonly source: Workload
  readonly peer: Peer
  readonly port: string
  readonly protocol: 'TCP' | 'UDP'
  readonly isDropped: boolean
  readonly isIngress: boolean
  /** Age of the first and of the last flow, in days. */
  readonly from: number
  readonly to: number
}

/** External addresses of public services, and internal addresses that no agent posted. */
const OUTSIDE = [
  ['3.120.44.17', '443'],
  ['13.107.246.40', '443'],
  ['34.107.221.82', '443'],
  ['52.58.78.16', '443'],
  ['54.76.137.67', '443'],
  ['104.18.32.7', '443'],
  ['140.82.121.6', '443'],
  ['151.101.1.69', '443'],
  ['185.199.108.133', '443'],
  ['91.189.91.39', '80'],
  ['2606:4700::6810:84e5', '443'],
  ['198.18.4.20', '9093'],
] as const
const UNKNOWN_INSIDE = ['172.31.7.44', '172.31.18.201', '192.168.40.12', '10.200.3.9'] as const
const VISITORS = ['81.2.69.142', '89.160.20.112', '175.16.199.4', '216.160.83.56', '2a02:26f0:6c00::210'] as const

/** The edges of the cluster: between the roles of a thing, to a few other things, the internet and DNS. */
export function edgesOf(workloads: readonly Workload[], dns: Workload): Edge[] {
  const byName = new Map(workloads.map((one) => [one.name, one]))
  const apis = workloads.filter(({ role }) => role.name === 'api')
  const served = workloads.filter(({ role }) => role.port !== null)
  const addresses = new Map(served.map(({ name }, n) => [name, serviceAddress(n)]))
  const edges: Edge[] = []

  for (const source of workloads) {
    const { name, thing, role } = source
    let made = 0
    const add = (peer: Peer, port: string, more: Partial<Edge> = {}) => {
      const key = `${name}/${made++}`
      const usual = { protocol: 'TCP', isDropped: false, isIngress: false } as const
      edges.push({ ...{ source, peer, port }, ...usual, ...spanOf(key), ...more })
    }
    const call = (target: Workload | undefined) => {
      if (!target || target === source || target.role.port === null) return
      const { port } = target.role
      const ip = addresses.get(target.name)
      const isByService = ip !== undefined && pick(`${name}>${target.name}`, 3) === 0
      add(isByService ? { type: 'service', workload: target, ip } : { type: 'workload', workload: target }, port)
      if (isByService) add({ type: 'workload', workload: target }, port)
    }
    const own = (other: string) => byName.get(name.replace(`${thing}-${role.name}`, `${thing}-${other}`))
    for (const other of CALLS[role.name] ?? []) call(own(other))
    const others = { api: 3, web: 2, worker: 2, gateway: 2, consumer: 1, indexer: 1 }[role.name] ?? 0
    for (let i = 0; i < others; i++) call(apis[pick(`${name}/other/${i}`, apis.length)])
    add({ type: 'workload', workload: dns }, '53', { protocol: 'UDP' })
    if (pick(`${name}/out`, 3) === 0) {
      const [ip, port] = OUTSIDE[pick(`${name}/where`, OUTSIDE.length)]!
      add({ type: 'address', ip }, port)
    }
    if (pick(`${name}/unknown`, 40) === 0)
      add({ type: 'address', ip: UNKNOWN_INSIDE[pick(name, UNKNOWN_INSIDE.length)]! }, '9092')
    if (role.name === 'gateway' && pick(`${name}/public`, 4) === 0)
      add({ type: 'address', ip: VISITORS[pick(name, VISITORS.length)]! }, role.port!, { isIngress: true })
    if (role.port !== null && pick(`${name}/probe`, 2) === 0) {
      const { node, ip } = source.pods[0]!
      add({ type: 'node', name: node, ip: ip.replace(/\.\d+$/, '.1') }, role.port, { isIngress: true })
    }
    if (pick(`${name}/drop`, 60) === 0) {
      const target = byName.get(apis[pick(`${name}/dropped`, apis.length)]!.name.replace('-api', '-db'))
      if (target) add({ type: 'workload', workload: target }, '5432', { isDropped: true, from: 20, to: 2 })
    }
  }
  return edges
}

/** The roles of the same thing that a role connects to. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  api: ['db', 'cache'],
  web: ['api', 'gateway', 'cache'],
  worker: ['db', 'api'],
  consumer: ['db', 'api'],
  gateway: ['web', 'api'],
  notifier: ['api'],
  indexer: ['db'],
  admin: ['api', 'db'],
  scheduler: ['api', 'db'],
  exporter: ['db'],
}

/** Nearly all edges are as old as the data; a few began in the last days, and a few have ended. */
function spanOf(key: string): { from: number; to: number } {
  const n = pick(key, 400)
  if (n === 0) return { from: 0.6, to: 0 }
  if (n < 4) return { from: 1 + n * 2, to: 0 }
  return n < 8 ? { from: DAYS, to: 9 } : { from: DAYS - (n % 20) / 10, to: 0 }
}

/** The columns of a flow, in the order of COPY. */
type Row = readonly (string | number | null)[]

function rowOf(edge: Edge, k: number, ofEdge: number, now: number): Row {
  const { source, peer, port, protocol, isDropped, isIngress, from, to } = edge
  const pod = source.pods[k % source.pods.length]!
  const turn = Math.floor(k / source.pods.length)
  const time = now - DAY_MS * (from - ((from - to) * (k + pick(pod.name, 100) / 100)) / ofEdge)
  const at = new Date(Math.min(time, now - 1_000)).toISOString().slice(0, -1)
  const peers = peerColumns(peer, turn, at)
  const round = Math.floor(turn / peers.choices)
  const ephemeral = round === 0 ? '0' : String(FIRST_EPHEMERAL_PORT + ((round * 7_919 + k) % 28_000))
  const [podPort, peerPort] = isIngress ? [port, ephemeral] : [ephemeral, port]
  return [
    ...[uidOf(`${pod.name}>${peers.ip}:${port}/${k}/${isIngress}/${isDropped}`), pod.name, source.namespace, pod.ip],
    podPort,
    ...[protocol, isIngress ? 'INGRESS' : 'EGRESS', peers.ip, peerPort, isDropped ? 'DROP' : 'ALLOW', at],
    ...peers.columns,
    ...(isDropped ? ['NO_RESPONSE', 3] : [null, null]),
    ...[source.kind, source.name, null],
  ]
}

interface PeerColumns {
  readonly ip: string
  /** How many addresses the peer has. */
  readonly choices: number
  readonly columns: readonly (string | null)[]
}

function peerColumns(peer: Peer, turn: number, at: string): PeerColumns {
  if (peer.type === 'address') return { ip: peer.ip, choices: 1, columns: Array(7).fill(null) }
  if (peer.type === 'node') return { ip: peer.ip, choices: 1, columns: ['node', null, peer.name, null, null, null, at] }
  const { namespace, name, kind, pods } = peer.workload
  if (peer.type === 'service')
    return { ip: peer.ip, choices: 1, columns: ['service', namespace, name, null, null, null, at] }
  const pod: Pod = pods[turn % pods.length]!
  return { ip: pod.ip, choices: pods.length, columns: ['pod', namespace, pod.name, pod.uid, kind, name, at] }
}

/** The reports of the peer, for half of the edges: the same flow from the other end. */
const mirrored = (edges: readonly Edge[]): Edge[] =>
  edges.flatMap((edge): Edge[] => {
    const { source, peer, port, isDropped } = edge
    if (peer.type !== 'workload' || isDropped || pick(`${source.name}<${peer.workload.name}`, 2) === 0) return []
    return [{ ...edge, source: peer.workload, peer: { type: 'workload', workload: source }, port, isIngress: true }]
  })

const addressOf = (peer: Peer) =>
  peer.type === 'workload' ? `${peer.workload.namespace}/${peer.workload.name}` : peer.ip

function distinct(edges: readonly Edge[]): Edge[] {
  const keyOf = ({ source, peer, port, isIngress, isDropped }: Edge) =>
    [source.namespace, source.name, addressOf(peer), port, isIngress, isDropped].join(' ')
  return [...new Map(edges.map((edge) => [keyOf(edge), edge])).values()]
}

/** Number of flows per edge. UDP flows are not distinguished by port, so there is one per pair of pods. */
function countsOf(edges: readonly Edge[], count: number): number[] {
  const pairsOf = ({ source, peer }: Edge) =>
    source.pods.length * (peer.type === 'workload' ? peer.workload.pods.length : 1)
  const counts = edges.map((edge) => (edge.protocol === 'UDP' ? pairsOf(edge) : 0))
  const tcp = edges.filter(({ protocol }) => protocol === 'TCP').length
  const left = count - counts.reduce((sum, one) => sum + one, 0)
  let extra = left - Math.floor(left / tcp) * tcp
  return edges.map(({ protocol }, n) =>
    protocol === 'UDP' ? counts[n]! : Math.floor(left / tcp) + (extra-- > 0 ? 1 : 0),
  )
}

/** Writes `count` flows over these edges and their mirrors. Edges count them in the order of their times. */
export async function copyFlows(sql: postgres.Sql, edges: readonly Edge[], count: number, now: number): Promise<void> {
  const all = distinct([...edges, ...mirrored(edges)])
  const counts = countsOf(all, count)
  await withoutIndexes(sql, 'traffic', async () => {
    const stream = await sql.unsafe(`copy traffic (${COLUMNS}) from stdin`).writable()
    let lines: string[] = []
    const flush = async () => {
      if (!stream.write(lines.join(''))) await once(stream, 'drain')
      lines = []
    }
    for (const [n, edge] of all.entries()) {
      const ofEdge = counts[n]!
      for (let k = 0; k < ofEdge; k++)
        lines.push(
          `${rowOf(edge, k, ofEdge, now)
            .map((cell) => cell ?? '\\N')
            .join('\t')}\n`,
        )
      if (lines.length >= COPY_ROWS) await flush()
    }
    await flush()
    stream.end()
    await once(stream, 'finish')
  })
}
