/** A small shop as agents report it, for tests of network policies. */
import assert from 'node:assert/strict'
import { flowEdges } from '../../jobs/flow-edges.ts'
import { type startApp, TOKENS } from './app.ts'
import { othersEnded } from './transactions.ts'
import { until } from './until.ts'

type App = Awaited<ReturnType<typeof startApp>>
type Fields = Record<string, unknown>

const DAY_MS = 86_400_000
/** A time of so many days ago, naive UTC. */
export const daysAgo = (days: number, time = '10:00:00') =>
  `${new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)}T${time}`

export interface PodFields {
  readonly namespace: string
  readonly name: string
  readonly ip: string
  readonly workload?: string
  readonly labels?: Fields
  readonly selector?: Fields
  readonly ports?: Fields[]
  readonly node?: string
  readonly hostNetwork?: boolean
  readonly more?: Fields
}

/** A pod as an agent posts it; `workload` is `Kind/name`. */
export function podOf({
  namespace,
  name,
  ip,
  workload,
  labels,
  selector,
  ports = [],
  node,
  hostNetwork,
  more,
}: PodFields) {
  const [kind, owner] = workload?.split('/') ?? []
  return {
    ...{ pod_namespace: namespace, pod_name: name, pod_ip: ip, node_name: node ?? 'node-1', is_dead: false },
    ...{ time_stamp: new Date().toISOString().slice(0, 19), started_at: daysAgo(30) },
    ...(workload === undefined ? {} : { workload_kind: kind, workload_name: owner }),
    ...(selector === undefined ? {} : { workload_selector_labels: selector }),
    pod_obj: {
      metadata: {
        ...{ name, uid: `uid-${name}`, labels: labels ?? {} },
        ownerReferences: workload === undefined ? [] : [{ kind: 'ReplicaSet', name: owner }],
      },
      spec: { hostNetwork: hostNetwork ?? false, containers: [{ name: 'main', ports }] },
    },
    ...more,
  }
}

export const serviceOf = (namespace: string, name: string, ip: string, spec: Fields) => ({
  ...{ svc_namespace: namespace, svc_name: name, svc_ip: ip, time_stamp: daysAgo(20) },
  service_spec: { metadata: { name, namespace, uid: `uid-svc-${name}` }, spec },
})

let flows = 0
/** A flow of the pod of an agent; `opened` by the pod itself or by the peer. */
export function flowOf(
  pod: ReturnType<typeof podOf>,
  opened: 'EGRESS' | 'INGRESS',
  peerIp: string,
  port: string,
  more: Fields = {},
) {
  flows++
  return {
    uuid: `00000000-0000-4000-8000-${String(flows).padStart(12, '0')}`,
    ...{ pod_name: pod.pod_name, pod_namespace: pod.pod_namespace, pod_ip: pod.pod_ip, traffic_type: opened },
    pod_port: opened === 'INGRESS' ? port : '0',
    ...{ traffic_in_out_ip: peerIp, traffic_in_out_port: opened === 'EGRESS' ? port : '0' },
    ...{ ip_protocol: 'TCP', decision: 'ALLOW', time_stamp: daysAgo(10) },
    ...more,
  }
}

const ingest = { headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` } }

/** Posts pods, services and flows, and counts the flows into edges. */
export async function seed(app: App, pods: object[], services: object[], flowsSent: object[]): Promise<void> {
  const sends = async (path: string, body: unknown) => {
    const answer = await app.post(path, body, ingest)
    assert.equal(answer.status, 200, answer.text)
  }
  for (const pod of pods) await sends('/pod/spec', pod)
  for (const service of services) await sends('/svc/spec', service)
  if (flowsSent.length > 0) await sends('/pod/traffic/batch', flowsSent)
  await countEdges(app)
}

/** Counts all flows. Up to which time they are counted is known only once the transactions that ran then have ended. */
export async function countEdges(app: App): Promise<void> {
  const { config, log } = app.deps
  await until('the flows are counted up to a known time', async () => {
    await othersEnded(app.sql)
    await flowEdges.run({ config, db: app.db, log, signal: new AbortController().signal })
    return (await app.sql`select from flow_edge_cursor where as_of is not null`).length === 1
  })
}

const label = (app: string) => ({ app, 'pod-template-hash': `hash-of-${app}` })
const pod = (name: string, ip: string, workload: string, more: Partial<PodFields> = {}) =>
  podOf({ namespace: 'shop', name, ip, workload, labels: label(workload.split('/')[1]!), ...more })

/**
 * Pods `web` call `api` through a service (80 to the port named http, 8080) and resolve names; `api` uses `db` and a host
 * on the internet; `prometheus` of another namespace scrapes `api`; the node probes `web`.
 */
export const SHOP = {
  web: pod('web-1', '10.1.0.1', 'Deployment/web', {
    selector: { app: 'web' },
    ports: [{ name: 'http', containerPort: 3000 }],
  }),
  api: pod('api-1', '10.1.0.2', 'Deployment/api', {
    selector: { app: 'api' },
    ports: [{ name: 'http', containerPort: 8080 }],
  }),
  db: pod('db-0', '10.1.0.3', 'StatefulSet/db', {
    labels: { app: 'db', 'statefulset.kubernetes.io/pod-name': 'db-0' },
  }),
  dns: podOf({
    ...{ namespace: 'kube-system', name: 'coredns-1', ip: '10.1.1.1', workload: 'Deployment/coredns' },
    ...{ labels: { 'k8s-app': 'kube-dns' }, selector: { 'k8s-app': 'kube-dns' } },
  }),
  prometheus: podOf({
    ...{ namespace: 'monitoring', name: 'prometheus-0', ip: '10.1.2.1', workload: 'StatefulSet/prometheus' },
    ...{ labels: { app: 'prometheus' }, selector: { app: 'prometheus' } },
  }),
  proxy: podOf({ namespace: 'kube-system', name: 'proxy-2', ip: '192.168.0.2', node: 'node-2', hostNetwork: true }),
}

export const SHOP_SERVICES = [
  serviceOf('shop', 'api', '10.96.0.1', { selector: { app: 'api' }, ports: [{ port: 80, targetPort: 'http' }] }),
  serviceOf('shop', 'db', '10.96.0.2', { selector: { app: 'db' }, ports: [{ port: 5432 }] }),
  serviceOf('kube-system', 'kube-dns', '10.96.0.10', {
    selector: { 'k8s-app': 'kube-dns' },
    ports: [{ port: 53, protocol: 'UDP', targetPort: 53 }],
  }),
]

export const SHOP_FLOWS = [
  flowOf(SHOP.web, 'EGRESS', '10.96.0.1', '80'),
  flowOf(SHOP.api, 'INGRESS', '10.1.0.1', '8080'),
  flowOf(SHOP.web, 'EGRESS', '10.96.0.10', '53', { ip_protocol: 'UDP' }),
  flowOf(SHOP.web, 'INGRESS', '192.168.0.2', '3000'),
  flowOf(SHOP.api, 'EGRESS', '10.96.0.2', '5432'),
  flowOf(SHOP.db, 'INGRESS', '10.1.0.2', '5432'),
  flowOf(SHOP.api, 'EGRESS', '93.184.216.34', '443'),
  flowOf(SHOP.api, 'INGRESS', '10.1.2.1', '9090'),
  flowOf(SHOP.web, 'EGRESS', '10.1.0.3', '5432', { decision: 'DROP' }),
]

export const seedShop = (app: App): Promise<void> => seed(app, Object.values(SHOP), SHOP_SERVICES, SHOP_FLOWS)
