/** Generated flows and filters, for the tests that compare answers with models. */
import fc from 'fast-check'
import type { PodHistory, Query, StoredFlow } from './flow-model.ts'

// ---- Generated rows: few values of each kind, so that filters match -------------------------------------------------

/** Moments are one microsecond apart and cross a full second. */
const MOMENTS = 6
const timeOf = (moment: number) =>
  moment < 3 ? `2024-05-01T09:59:59.99999${7 + moment}` : `2024-05-01T10:00:00.00000${moment - 3}`
const moment = fc.nat(MOMENTS - 1)

/** The first values are drawn as often as all others together. */
const mostly = <T>(usual: readonly T[], others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(fc.constantFrom(...usual), fc.constantFrom(...others))

const NAMESPACES = ['shop', 'shop-2', 'kube-system']
const PODS = ['web-1', 'web-2', 'web_1', 'db-0', 'dns']
const SERVICES = ['web', 'db', 'web-1']
const NODES = ['node-a', 'node-b']
const PORTS = ['443', '0', '8080', '8999', '65535', '70000', 'http', '', '-443', '443.0', '0443', '00', null]
const PROTOCOLS = ['UDP', 'SCTP', 'ICMP', 'udp', '', null]
const DECISIONS = ['DROP', 'allow', 'AUDIT', '', null]
const TYPES = ['egress', 'ingress', 'FORWARD', '', null]

const PUBLIC_ADDRESSES = [
  ...['8.8.8.8', '8.8.8.255', '8.8.9.0', '1.1.1.1', '172.32.0.0', '100.128.0.0', '198.18.0.1', '223.255.255.255'],
  ...['2001:4860:4860::8888', '2001:db9::', 'fec0::1', '3fff:1000::', '64:ff9b::808:808', '::2'],
]
const PRIVATE_ADDRESSES = [
  ...['10.0.0.5', '10.0.0.6', '172.31.255.255', '192.168.1.1', '100.64.0.0', '127.0.0.1', '0.0.0.0', '169.254.0.1'],
  ...['192.0.2.1', '198.51.100.9', '203.0.113.255', '224.0.0.1', '255.255.255.255'],
  ...['fd00::1', 'fe80::1', 'febf:ffff::', '::', '::1', 'ff02::1', '2001:db8::1', '3fff:fff::1'],
]
const NO_ADDRESSES = [
  ...['', 'None', '010.0.0.5', '10.0.0.5/32', '8.8.8.8/32', ' 8.8.8.8', '8.8.8.8\n', '8.8.8', '8.8.8.256'],
  ...['fe80::1%eth0', '2001:4860:::8888', '1:2:3:4:5:6:7:8:9', '12345::', ':', 'fd00::1::', '8.8.8.8:443', null],
]
const address = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('10.0.0.5', '8.8.8.8', 'fd00::1', '2001:4860:4860::8888') },
  { weight: 2, arbitrary: fc.constantFrom(...PUBLIC_ADDRESSES) },
  { weight: 2, arbitrary: fc.constantFrom(...PRIVATE_ADDRESSES) },
  { weight: 1, arbitrary: fc.constantFrom(...NO_ADDRESSES) },
)

const namespace = mostly<string | null>(['shop'], [...NAMESPACES, null])
const port = mostly(['443', '8080'], PORTS)

type Workload = 'Deployment/web' | 'DaemonSet/web' | 'StatefulSet/db' | 'bare' | null
const workload = fc.constantFrom<Workload>('Deployment/web', 'DaemonSet/web', 'StatefulSet/db', 'bare', null)

/** A pod without an owner is its own workload. */
function workloadOf(one: Workload, pod: string | null): [kind: string | null, name: string | null] {
  if (one === null || (one === 'bare' && pod === null)) return [null, null]
  if (one === 'bare') return ['Pod', pod]
  const [kind, name] = one.split('/')
  return [kind!, name!]
}

const peerPod = fc.record({ namespace, name: fc.constantFrom(...PODS), workload })
const peer = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('pod' as const), of: peerPod }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('node' as const), of: peerPod }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('service' as const),
      of: fc.record({ namespace, name: fc.constantFrom(...SERVICES), workload: fc.constant(null) }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.constant({ kind: null, of: { namespace: null, name: null, workload: null } }),
  },
)

/** Of many flows at one moment the uuid decides the order, byte by byte. */
const uuidPrefix = fc.constantFrom('a', 'a-', 'A', 'b', '9', 'é', '')

const flow = fc
  .record({
    uuidPrefix,
    moment,
    pod: mostly<string | null>(['web-1'], [...PODS, null]),
    namespace,
    workload,
    ip: address,
    port,
    protocol: mostly<string | null>(['TCP'], PROTOCOLS),
    type: fc.oneof(
      { weight: 3, arbitrary: fc.constant('EGRESS') },
      { weight: 3, arbitrary: fc.constant('INGRESS') },
      { weight: 1, arbitrary: fc.constantFrom(...TYPES) },
    ),
    peer,
    peerIp: address,
    peerPort: port,
    decision: mostly<string | null>(['ALLOW'], DECISIONS),
  })
  .map((one) => (number: number): StoredFlow => {
    const [ownKind, ownName] = workloadOf(one.workload, one.pod)
    const { kind, of } = one.peer
    const [peerKind, peerName] = workloadOf(of.workload, of.name)
    return {
      uuid: `${one.uuidPrefix}${number}`,
      pod_name: one.pod,
      pod_namespace: one.namespace,
      pod_ip: one.ip,
      pod_port: one.port,
      ip_protocol: one.protocol,
      traffic_type: one.type,
      // A node is found by its address.
      traffic_in_out_ip: one.peerIp ?? (kind === 'node' ? '10.0.0.5' : null),
      traffic_in_out_port: one.peerPort,
      decision: one.decision,
      time_stamp: timeOf(one.moment),
      peer_kind: kind,
      peer_namespace: of.namespace,
      peer_name: of.name,
      peer_uid: kind && 'uid',
      peer_workload_kind: peerKind,
      peer_workload_name: peerName,
      peer_resolved_at: kind && timeOf(one.moment),
      drop_cause: null,
      syn_retries: null,
      pod_workload_kind: ownKind,
      pod_workload_name: ownName,
    }
  })
export const flows = fc.array(flow, { minLength: 1, maxLength: 30 }).map((makers) => makers.map((make, i) => make(i)))

const LABELS: Record<string, string>[] = [
  ...[{ app: 'web' }, { app: 'web', tier: 'front' }, { app: 'db', tier: '' }, {}, { 'app.kubernetes.io/name': 'web' }],
]
export const history: fc.Arbitrary<PodHistory[]> = fc.uniqueArray(
  fc.record({
    namespace: mostly(['shop'], NAMESPACES),
    name: mostly(['web-1'], PODS),
    since: moment.map(timeOf),
    labels: fc.constantFrom(...LABELS),
    node: fc.constantFrom(...NODES),
  }),
  { maxLength: 12, selector: (one) => [one.namespace, one.name, one.since].join() },
)

// ---- Generated filters ----------------------------------------------------------------------------------------------

const WORKLOADS = [
  ...['shop/web', 'shop/Deployment/web', 'shop/DaemonSet/web', 'shop/db', 'shop/StatefulSet/db', 'shop-2/web'],
  ...['shop/web-1', 'shop/Pod/web-1', 'shop/Deployment/web-1', 'kube-system/Pod/dns', 'kube-system/web', 'other/web'],
]
const OF_SIDES: Record<string, string[]> = {
  namespace: [...NAMESPACES, 'other'],
  workload: WORKLOADS,
  pod: ['shop/web-1', 'shop/web*', 'shop/web-*', 'shop/web_*', 'shop/db-0', 'shop-2/web-1', 'shop-2/d*', 'other/web-1'],
  service: ['shop/web', 'shop/db', 'shop/web-1', 'shop-2/web', 'kube-system/db'],
  ip: [
    ...['10.0.0.5', '8.8.8.8', '::ffff:8.8.8.8', '::FFFF:808:808', 'fd00::1', 'FD00:0::0:1', '::1', '0.0.0.0'],
    ...['2001:4860:4860:0:0:0:0:8888', '10.0.0.0/8', '10.0.0.5/32', '8.8.8.0/24', '8.8.8.0/23', '0.0.0.0/0', '::/0'],
    ...['128.0.0.0/1', '2001:4860::/32', '2001:db8::/31', 'fe80::/10', 'fd00::/8', 'fd00::1/128', '172.16.0.0/12'],
    ...['::ffff:10.0.0.5/128', '::FFFF:a00:0/104', '::ffff:0:0/96'],
  ],
  label: ['app=web', 'app=db', 'tier=front', 'tier=', 'app.kubernetes.io/name=web', 'none=web'],
  node: [...NODES, 'node-c'],
}
const OF_FLOWS: Record<string, string[]> = {
  port: ['443', '8080', '0', '65535', '8000-8999', '0-443', '1-65535', '443-443'],
  protocol: ['TCP', 'UDP', 'SCTP', 'tcp', 'Udp'],
  verdict: ['ALLOW', 'DROP', 'allow', 'Drop'],
  seen_by: ['from', 'to', 'FROM', 'To'],
  peer: ['pod', 'service', 'node', 'external', 'unresolved', 'Pod', 'EXTERNAL'],
  public: ['true', 'false', 'TRUE', 'False'],
}

const value = (known: string[]) =>
  fc
    .record({
      excluded: fc.oneof({ weight: 2, arbitrary: fc.constant('') }, { weight: 1, arbitrary: fc.constant('!') }),
      one: fc.constantFrom(...known),
    })
    .map(({ excluded, one }) => `${excluded}${one}`)

/** One parameter with its values. A blank value is no filter. */
const filterOf = (parameter: string, known: string[]): fc.Arbitrary<Query> =>
  fc
    .oneof(
      { weight: 12, arbitrary: fc.array(value(known), { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.constant(['']) },
    )
    .map((values) => values.map((text) => [parameter, text]))

export const filter: fc.Arbitrary<Query> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.oneof(
      ...Object.entries(OF_SIDES).flatMap(([name, known]) =>
        ['', '', 'from_', 'to_'].map((side) => filterOf(`${side}${name}`, known)),
      ),
    ),
  },
  { weight: 1, arbitrary: fc.oneof(...Object.entries(OF_FLOWS).map(([name, known]) => filterOf(name, known))) },
)

/** A time in one of its spellings. */
function spelled(time: string, spelling: number): string {
  const inTwoHours = time.replace(/T(\d\d)/, (_, hour) => `T${Number(hour) + 2}`)
  return [time, `${time}Z`, `${inTwoHours}+02:00`, `${time}999`][spelling]!
}

export const range: fc.Arbitrary<Query> = fc
  .record({
    bounds: fc.tuple(moment, moment).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const),
    spellings: fc.tuple(fc.nat(3), fc.nat(3)),
    which: fc.subarray(['since', 'until'] as const),
  })
  .map(({ bounds, spellings, which }) =>
    which.map((name) => {
      const i = name === 'since' ? 0 : 1
      return [name, spelled(timeOf(bounds[i]), spellings[i])]
    }),
  )

// ---- Storing them ----

const COLUMNS = [
  ...['uuid', 'pod_name', 'pod_namespace', 'pod_ip', 'pod_port', 'ip_protocol', 'traffic_type', 'traffic_in_out_ip'],
  ...['traffic_in_out_port', 'decision', 'time_stamp', 'peer_kind', 'peer_namespace', 'peer_name', 'peer_uid'],
  ...['peer_workload_kind', 'peer_workload_name', 'peer_resolved_at', 'drop_cause', 'syn_retries'],
  ...['pod_workload_kind', 'pod_workload_name'],
].join(', ')
// Other columns keep their defaults.
export const INSERT_FLOWS = `
  insert into traffic (${COLUMNS})
  select ${COLUMNS} from json_populate_recordset(null::traffic, $1::text::json)
  on conflict do nothing
  returning uuid`
