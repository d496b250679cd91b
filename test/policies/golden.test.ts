/**
 * Policies for what real clusters do, beside files that a person has read: `UPDATE_SNAPSHOTS=1` writes them anew. The
 * script `scripts/policies-check.sh` validates them and applies them to an API server.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Connection, End, PodGroup, Service, Workload } from '../../lib/policies/facts.ts'
import { yamlOfPolicy } from '../../lib/policies/make/document.ts'
import { type MakeOptions, PolicyMaker } from '../../lib/policies/make/policy.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'

const folder = fileURLToPath(new URL('../fixtures/policies', import.meta.url))
const FORMATS = ['kubernetes', 'cilium'] as const

type Labels = Record<string, string>
const workloadOf = (text: string): Workload => {
  const [namespace, kind, name] = text.split('/') as [string, string, string]
  return { namespace, kind, name }
}
const pods = (workload: string, labels: Labels, more: Partial<PodGroup> = {}): PodGroup => ({
  ...{ workload: workloadOf(workload), labels, selectorLabels: null, namedPorts: {}, isHostNetwork: false },
  ...{ isLiving: true, ips: [] },
  ...more,
})
const service = (name: string, selector: Labels | null, ports: Service['ports']): Service => {
  const [namespace, own] = name.split('/') as [string, string]
  return { namespace, name: own, selector, ports }
}
/** `shop/Deployment/web`, `service shop/api`, `node 192.168.0.1`, `external 1.1.1.1`, `unresolved 10.9.9.9`. */
function endOf(text: string): End {
  const [type, rest] = text.split(' ') as [string, string | undefined]
  if (rest === undefined) return { type: 'workload', ...workloadOf(type) }
  if (type !== 'service') return { type: type as 'node', ip: rest }
  const [namespace, name] = rest.split('/') as [string, string]
  return { type, namespace, name }
}
function flow(from: string, to: string, port: string, more: Partial<Connection> = {}): Connection {
  const [number, protocol = 'TCP'] = port.split('/') as [string, string | undefined]
  return {
    ...{ from: endOf(from), to: endOf(to), port: number, protocol, isDropped: false, seenBy: 'from', flows: 1 },
    ...{ firstSeenAt: '2026-01-01T09:00:00', lastNewAt: '2026-01-20T09:00:00', edgeId: null },
    ...more,
  }
}
const received = { seenBy: 'to' as const }

const DNS = pods(
  'kube-system/Deployment/coredns',
  { 'k8s-app': 'kube-dns', 'pod-template-hash': '7f8' },
  {
    selectorLabels: { 'k8s-app': 'kube-dns' },
  },
)
const KUBE_DNS = service('kube-system/kube-dns', { 'k8s-app': 'kube-dns' }, [
  { port: 53, protocol: 'UDP', targetPort: 53 },
  { port: 53, protocol: 'TCP', targetPort: 53 },
])
const WEB = pods('shop/Deployment/web', { app: 'web', 'pod-template-hash': 'a1' }, { selectorLabels: { app: 'web' } })
const API = pods(
  'shop/Deployment/api',
  { app: 'api', 'pod-template-hash': 'b1' },
  {
    ...{ selectorLabels: { app: 'api' }, namedPorts: { http: 8080, metrics: 9102 } },
  },
)
const asksDns = (who: string) => flow(who, 'service kube-system/kube-dns', '53/UDP')

interface Case {
  readonly of: string
  readonly pods: PodGroup[]
  readonly services?: Service[]
  readonly connections: Connection[]
  readonly options?: Partial<MakeOptions>
  readonly silentNodes?: string[]
}

const CASES: Record<string, Case> = {
  'target port behind a service port': {
    of: 'shop/Deployment/web',
    pods: [WEB, API, DNS],
    services: [KUBE_DNS, service('shop/api', { app: 'api' }, [{ port: 80, protocol: 'TCP', targetPort: 8080 }])],
    connections: [
      flow('shop/Deployment/web', 'service shop/api', '80'),
      // The row of the server itself, of the same connection.
      flow('shop/Deployment/web', 'shop/Deployment/api', '8080', received),
      asksDns('shop/Deployment/web'),
    ],
  },
  'named target port': {
    of: 'shop/Deployment/api',
    pods: [WEB, API, DNS],
    services: [KUBE_DNS, service('shop/api', { app: 'api' }, [{ port: 80, protocol: 'TCP', targetPort: 'http' }])],
    connections: [
      flow('shop/Deployment/web', 'service shop/api', '80'),
      flow('shop/Deployment/web', 'shop/Deployment/api', '8080', received),
      asksDns('shop/Deployment/api'),
    ],
  },
  'headless service': {
    of: 'shop/Deployment/web',
    pods: [WEB, DNS, pods('data/StatefulSet/cassandra', { 'app.kubernetes.io/name': 'cassandra' })],
    services: [KUBE_DNS],
    // The name of a headless service resolves to addresses of pods; the broker stores no such service.
    connections: [flow('shop/Deployment/web', 'data/StatefulSet/cassandra', '9042'), asksDns('shop/Deployment/web')],
  },
  'coredns keeps udp 53': {
    of: 'kube-system/Deployment/coredns',
    pods: [WEB, API, DNS],
    services: [KUBE_DNS, service('default/kubernetes', null, [{ port: 443, protocol: 'TCP', targetPort: 6443 }])],
    connections: [
      asksDns('shop/Deployment/web'),
      asksDns('shop/Deployment/api'),
      flow('shop/Deployment/api', 'kube-system/Deployment/coredns', '53', received),
      flow('node 192.168.0.1', 'kube-system/Deployment/coredns', '8080', received),
      flow('kube-system/Deployment/coredns', 'service default/kubernetes', '443'),
      flow('kube-system/Deployment/coredns', 'external 8.8.8.8', '53/UDP'),
    ],
  },
  'dns on 5353': {
    of: 'shop/Deployment/web',
    pods: [
      WEB,
      pods(
        'openshift-dns/DaemonSet/dns-default',
        { 'dns.operator.openshift.io/daemonset-dns': 'default' },
        {
          namedPorts: { dns: 5353, 'dns-tcp': 5353, metrics: 9154 },
        },
      ),
    ],
    services: [
      service('openshift-dns/dns-default', { 'dns.operator.openshift.io/daemonset-dns': 'default' }, [
        { port: 53, protocol: 'UDP', targetPort: 'dns' },
        { port: 53, protocol: 'TCP', targetPort: 'dns-tcp' },
      ]),
    ],
    connections: [flow('shop/Deployment/web', 'service openshift-dns/dns-default', '53/UDP')],
  },
  'selector after three rollouts': {
    of: 'shop/Deployment/web',
    pods: [
      ...['v1', 'v2', 'v3'].map((version, i) =>
        pods(
          'shop/Deployment/web',
          { app: 'shop', component: 'web', 'pod-template-hash': `hash${i}`, version, 'helm.sh/chart': `shop-${i}` },
          { isLiving: version === 'v3' },
        ),
      ),
      pods('shop/Deployment/api', { app: 'shop', component: 'api', 'pod-template-hash': 'b1' }),
    ],
    connections: [flow('external 93.184.216.34', 'shop/Deployment/web', '8443', received)],
  },
  statefulset: {
    of: 'data/StatefulSet/postgres',
    pods: [
      ...[0, 1, 2].map((n) =>
        pods('data/StatefulSet/postgres', {
          ...{ app: 'postgres', 'controller-revision-hash': 'postgres-6d', 'apps.kubernetes.io/pod-index': String(n) },
          'statefulset.kubernetes.io/pod-name': `postgres-${n}`,
        }),
      ),
      API,
      DNS,
    ],
    services: [
      KUBE_DNS,
      service('data/postgres', { app: 'postgres' }, [{ port: 5432, protocol: 'TCP', targetPort: 5432 }]),
    ],
    connections: [
      flow('shop/Deployment/api', 'service data/postgres', '5432'),
      // Replication between the members.
      flow('data/StatefulSet/postgres', 'data/StatefulSet/postgres', '5432'),
      flow('data/StatefulSet/postgres', 'data/StatefulSet/postgres', '5432', received),
      asksDns('data/StatefulSet/postgres'),
    ],
  },
  cronjob: {
    of: 'shop/CronJob/report',
    pods: [
      ...['29000001', '29000002'].map((run) =>
        pods(
          'shop/CronJob/report',
          {
            ...{ app: 'report', 'job-name': `report-${run}`, 'batch.kubernetes.io/job-name': `report-${run}` },
            ...{ 'controller-uid': `uid-${run}`, 'batch.kubernetes.io/controller-uid': `uid-${run}` },
          },
          { isLiving: false },
        ),
      ),
      API,
      DNS,
    ],
    services: [KUBE_DNS],
    connections: [
      flow('shop/CronJob/report', 'shop/Deployment/api', '8080'),
      flow('shop/CronJob/report', 'external 93.184.216.34', '587'),
      asksDns('shop/CronJob/report'),
    ],
  },
  'host network': {
    of: 'monitoring/DaemonSet/node-exporter',
    pods: [
      pods(
        'monitoring/DaemonSet/node-exporter',
        { app: 'node-exporter' },
        { isHostNetwork: true, ips: ['192.168.0.1'] },
      ),
      pods('monitoring/StatefulSet/prometheus', { app: 'prometheus' }),
    ],
    connections: [flow('monitoring/StatefulSet/prometheus', 'monitoring/DaemonSet/node-exporter', '9100', received)],
  },
  'peers on the host network': {
    of: 'shop/Deployment/api',
    pods: [
      API,
      DNS,
      pods('kube-system/DaemonSet/agent', { app: 'agent' }, { isHostNetwork: true, ips: ['192.168.0.7'] }),
    ],
    services: [KUBE_DNS],
    connections: [
      flow('node 192.168.0.9', 'shop/Deployment/api', '8080', received),
      flow('kube-system/DaemonSet/agent', 'shop/Deployment/api', '9102'),
      asksDns('shop/Deployment/api'),
    ],
  },
  'node-local dns': {
    of: 'shop/Deployment/web',
    pods: [WEB, DNS],
    services: [KUBE_DNS],
    connections: [
      flow('shop/Deployment/web', 'unresolved 169.254.20.10', '53/UDP'),
      flow('shop/Deployment/web', 'unresolved 169.254.20.10', '53/TCP'),
    ],
  },
  'dual stack': {
    of: 'shop/Deployment/web',
    pods: [WEB, DNS],
    services: [KUBE_DNS],
    connections: [
      flow('shop/Deployment/web', 'external 93.184.216.34', '443'),
      flow('shop/Deployment/web', 'external 2606:2800:220:1:248:1893:25c8:1946', '443'),
      flow('node fd00:10::1', 'shop/Deployment/web', '8080', received),
      flow('node 192.168.0.1', 'shop/Deployment/web', '8080', received),
      asksDns('shop/Deployment/web'),
    ],
  },
  'ephemeral ports': {
    of: 'shop/Deployment/web',
    pods: [WEB, DNS, pods('data/StatefulSet/ftp', { app: 'ftp' })],
    services: [KUBE_DNS],
    connections: [
      ...['21', '40001', '40002', '40003', '40004', '40005'].map((port) =>
        flow('shop/Deployment/web', 'data/StatefulSet/ftp', port),
      ),
      asksDns('shop/Deployment/web'),
    ],
  },
  'cross-namespace': {
    of: 'shop/Deployment/api',
    pods: [
      API,
      DNS,
      pods('monitoring/StatefulSet/prometheus', { app: 'prometheus' }),
      pods('ingress-nginx/DaemonSet/controller', { 'app.kubernetes.io/name': 'ingress-nginx' }),
      pods('data/StatefulSet/postgres', { app: 'postgres' }),
    ],
    services: [
      KUBE_DNS,
      service('data/postgres', { app: 'postgres' }, [{ port: 5432, protocol: 'TCP', targetPort: 5432 }]),
    ],
    connections: [
      flow('monitoring/StatefulSet/prometheus', 'shop/Deployment/api', '9102', received),
      flow('ingress-nginx/DaemonSet/controller', 'shop/Deployment/api', '8080', received),
      flow('shop/Deployment/api', 'service data/postgres', '5432'),
      asksDns('shop/Deployment/api'),
      flow('data/StatefulSet/postgres', 'shop/Deployment/api', '8080', { ...received, isDropped: true }),
    ],
  },
  'external by prefix': {
    of: 'shop/Deployment/web',
    pods: [WEB, DNS],
    services: [KUBE_DNS],
    connections: [
      ...['93.184.216.34', '93.184.216.35', '198.41.0.4'].map((ip) =>
        flow('shop/Deployment/web', `external ${ip}`, '443'),
      ),
      flow('shop/Deployment/web', 'external 2600:1f18::7', '443'),
      ...Array.from({ length: 60 }, (_, i) => flow('shop/Deployment/web', `external 52.${i % 3}.${i}.9`, '8883')),
      asksDns('shop/Deployment/web'),
    ],
    options: { cidr: '24' },
  },
  'a peer that shares its labels': {
    of: 'shop/Deployment/api',
    pods: [
      ...[API, DNS],
      pods('shop/Deployment/blue', { app: 'front', 'pod-template-hash': 'a' }),
      pods('shop/Deployment/green', { app: 'front', 'pod-template-hash': 'b' }),
    ],
    services: [KUBE_DNS],
    connections: [
      flow('shop/Deployment/blue', 'shop/Deployment/api', '8080', received),
      asksDns('shop/Deployment/api'),
    ],
  },
  'partial, and acknowledged': {
    of: 'shop/Deployment/web',
    pods: [WEB, DNS],
    services: [KUBE_DNS],
    connections: [flow('shop/Deployment/web', 'service shop/gone', '80', { firstSeenAt: '2026-01-28T09:00:00' })],
    options: { since: '2026-01-25T00:00:00' },
    silentNodes: ['node-3'],
  },
}

const OPTIONS: MakeOptions = {
  ...{ format: 'kubernetes', direction: 'both', cidr: 'exact', min_days: 7, output: 'yaml', acknowledgePartial: true },
  ...{ since: null, now: '2026-02-01T00:00:00', prefix: 'kguardian.dev' },
}

async function make(
  { of, pods: groups, services = [], connections, options, silentNodes = [] }: Case,
  format: 'kubernetes' | 'cilium',
) {
  const all = { ...OPTIONS, ...options, format }
  const maker = new PolicyMaker({ pods: groups, services, connections }, all)
  const since = options?.since ?? '2026-01-01T08:00:00'
  return yamlOfPolicy(await maker.make(workloadOf(of), { since, silentNodes }))
}

for (const [name, one] of Object.entries(CASES))
  for (const format of FORMATS)
    test(`${name}, ${format}`, async () => {
      const text = await make(one, format)
      const file = join(folder, `${name.replace(/[^a-z0-9]+/g, '-')}.${format}.yaml`)
      if (process.env.UPDATE_SNAPSHOTS) {
        mkdirSync(folder, { recursive: true })
        writeFileSync(file, text)
      }
      assert.equal(text, readFileSync(file, 'utf8'))
      assert.equal((await parsePolicies(text, 'yaml')).length, 1)
      const mixed = { ...one, pods: one.pods.toReversed(), connections: one.connections.toReversed() }
      assert.equal(await make({ ...mixed, services: (one.services ?? []).toReversed() }, format), text, 'in any order')
    })

test('every file has its case', () => {
  assert.equal(readdirSync(folder).length, Object.keys(CASES).length * FORMATS.length)
})
