import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { flowOf, podOf, seed, seedShop, serviceOf } from '../support/policy-cluster.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
await seedShop(app)

const authorization = `Bearer ${TOKENS.BROKER_TOKEN_READ}`
const yaml = { authorization, 'content-type': 'application/yaml' }
const tries = (body: string, query = '', headers: Record<string, string> = yaml) =>
  app.request('POST', `/networkpolicy/try${query}`, { headers, body })

type Side = Record<string, string | null>
const textOf = ({ namespace, workload, name, ip }: Side) =>
  [namespace, workload ?? name ?? ip].filter(Boolean).join('/')
interface Denied {
  from: Side
  to: Side
  port: string
  deniedBy: { direction: string; policy: string; path: string | null; why: string }[]
  example: { uuid: string } | null
}
const linesOf = (edges: Denied[]) =>
  edges
    .map(
      ({ from, to, port, deniedBy }) =>
        `${textOf(from)} > ${textOf(to)}:${port} ${deniedBy.map((one) => one.direction)}`,
    )
    .sort()

const DENY_ALL = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: shop}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
`
const API = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: api, namespace: shop}
spec:
  podSelector: {matchLabels: {app: api}}
  policyTypes: [Ingress]
  ingress:
  - from: [{podSelector: {matchLabels: {app: web}}}]
    ports: [{port: http}]
  - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
    ports: [{port: 9091}]
`

test('POST /networkpolicy/try 200: a default deny denies every edge of the namespace, dropped flows aside', async () => {
  const { status, json, text } = await tries(DENY_ALL)
  assert.equal(status, 200, text)
  assert.deepEqual(linesOf(json.deniedEdges), [
    '192.168.0.2 > shop/Deployment/web:3000 ingress',
    'monitoring/StatefulSet/prometheus > shop/Deployment/api:9090 ingress',
    'shop/Deployment/api > 93.184.216.34:443 egress',
    'shop/Deployment/api > shop/StatefulSet/db:5432 egress,ingress',
    'shop/Deployment/web > kube-system/Deployment/coredns:53 egress',
    'shop/Deployment/web > shop/Deployment/api:8080 egress,ingress',
  ])
  const { evaluated, allowed, denied, unknown, moreDenied } = json
  assert.deepEqual(
    { evaluated, allowed, denied, unknown, moreDenied },
    { evaluated: 6, allowed: 0, denied: 6, unknown: 0, moreDenied: 0 },
  )
  assert.deepEqual(json.policies[0].workloads, ['Deployment/api', 'Deployment/web', 'StatefulSet/db'])
  assert.ok(json.deniedEdges.every((one: Denied) => one.example !== null))
})

test('POST /networkpolicy/try 200: the example is a stored flow of either side', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  await seedShop(own)
  const exampleOf = async () => {
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body: DENY_ALL })
    const edges: Denied[] = json.deniedEdges
    return edges.find(({ from, to }) => `${textOf(from)} ${textOf(to)}` === 'shop/Deployment/web shop/Deployment/api')!
      .example as { podName: string } | null
  }
  await own.sql`update traffic set time_stamp = time_stamp + interval '1 hour' where pod_name = 'api-1'`
  assert.equal((await exampleOf())?.podName, 'api-1', 'the newest')
  await own.sql`update traffic set time_stamp = time_stamp - interval '2 hours' where pod_name = 'api-1'`
  assert.equal((await exampleOf())?.podName, 'web-1')
  await own.sql`delete from traffic where pod_name = 'web-1'`
  assert.equal((await exampleOf())?.podName, 'api-1')
})

test('POST /networkpolicy/try 200: a port name, the nearest rule, and the edges of one policy', async () => {
  const { json } = await tries(API)
  assert.deepEqual(linesOf(json.deniedEdges), ['monitoring/StatefulSet/prometheus > shop/Deployment/api:9090 ingress'])
  assert.deepEqual(json.deniedEdges[0].deniedBy, [
    {
      ...{ direction: 'ingress', document: 1, policy: 'shop/api', path: 'spec.ingress[1]' },
      why: 'port 9090/TCP is not among 9091/TCP',
    },
  ])
  assert.deepEqual([json.evaluated, json.allowed, json.denied], [2, 1, 1])
})

test('POST /networkpolicy/try 200: policies are taken together, and Cilium is judged beside Kubernetes', async () => {
  const scrape = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: scrape, namespace: shop}
spec:
  endpointSelector: {matchLabels: {app: api}}
  ingress:
  - fromEndpoints: [{matchLabels: {"k8s:io.kubernetes.pod.namespace": monitoring}}]
    toPorts: [{ports: [{port: "9090", protocol: TCP}]}]
  egress:
  - toEntities: [world]
  - toEndpoints: [{matchLabels: {app: db}}]
    toPorts: [{ports: [{port: "5432"}], rules: {l7proto: sql}}]
`
  const { json, text } = await tries(`${API}---${scrape}`)
  assert.deepEqual(linesOf(json.deniedEdges), [], text)
  assert.deepEqual([json.evaluated, json.allowed, json.unknown], [4, 3, 1])
  assert.deepEqual(json.unknownReasons, [{ reason: 'rules of layer 7', edges: 1 }])
  assert.deepEqual(
    json.policies.map(({ document, name, evaluated, allowed }: Record<string, unknown>) => [
      document,
      name,
      evaluated,
      allowed,
    ]),
    [
      [1, 'api', 2, 2],
      [2, 'scrape', 4, 3],
    ],
  )
})

test('POST /networkpolicy/try 200: the namespace and the window choose the edges', async () => {
  const evaluated = async (query: string) => (await tries(DENY_ALL, query)).json.evaluated
  assert.equal(await evaluated('?namespace=monitoring'), 1)
  assert.equal(await evaluated('?namespace=elsewhere'), 0)
  assert.equal(await evaluated('?since=1d'), 0)
  assert.equal(await evaluated('?since=60d'), 6)
  assert.equal(await evaluated('?until=60d'), 0)
})

/** A pod of node-1, pods on the host network of two nodes, and a connection with each in each direction. */
async function withNodes() {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const here = podOf({ namespace: 'shop', name: 'web-9', ip: '10.1.0.9', labels: { app: 'web' }, node: 'node-1' })
  const node = (name: string, ip: string) =>
    podOf({ namespace: 'kube-system', name: `proxy-${name}`, ip, node: name, hostNetwork: true })
  const pods = [here, node('node-1', '192.168.0.1'), node('node-2', '192.168.0.2')]
  const flows = ['192.168.0.1', '192.168.0.2'].flatMap((ip) => [
    flowOf(here, 'INGRESS', ip, '80'),
    flowOf(here, 'EGRESS', ip, '9100'),
  ])
  await seed(own, pods, [], flows)
  return async (body: string) => {
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body })
    return { denied: linesOf(json.deniedEdges), counts: [json.allowed, json.unknown] }
  }
}

test('POST /networkpolicy/try 200: a pod and its own node: Kubernetes denies nothing, Cilium only what the pod opens', async () => {
  const trial = await withNodes()
  const [fromNode, toNode] = ['1', '2'].map((n) => [
    `192.168.0.${n} > shop/Pod/web-9:80 ingress`,
    `shop/Pod/web-9 > 192.168.0.${n}:9100 egress`,
  ]) as [string[], string[]]
  assert.deepEqual(await trial(DENY_ALL), { denied: toNode, counts: [2, 0] })
  const cilium = (spec: string) => `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: nodes, namespace: shop}
spec: {endpointSelector: {}, ${spec}}
`
  const [ownEgress, otherIngress, otherEgress] = [fromNode[1]!, toNode[0]!, toNode[1]!]
  const nodes = 'toEntities: [host, remote-node]'
  assert.deepEqual(await trial(cilium('egress: [{}]')), { denied: [ownEgress, otherEgress], counts: [0, 0] })
  assert.deepEqual(await trial(cilium(`egressDeny: [{${nodes}}]`)), {
    ...{ denied: [ownEgress, otherEgress], counts: [0, 0] },
  })
  assert.deepEqual(await trial(cilium('ingress: [{}]')), { denied: [otherIngress], counts: [1, 0] })
  const deny = (entities: string) => cilium(`ingressDeny: [{fromEntities: [${entities}]}]`)
  assert.deepEqual(await trial(deny('host, remote-node')), { denied: [fromNode[0], otherIngress], counts: [0, 0] })
  assert.deepEqual(await trial(deny('world')), { denied: [otherIngress], counts: [1, 0] })
  assert.deepEqual(await trial(deny('host')), { denied: [otherIngress], counts: [0, 1] })
  const open = cilium('enableDefaultDeny: {egress: false}, egress: [{toEntities: [world]}]')
  assert.deepEqual(await trial(open), { denied: [], counts: [0, 0] })
  assert.deepEqual(await trial(`${DENY_ALL}---${open}`), { denied: toNode, counts: [2, 0] })
  assert.deepEqual(await trial(`${DENY_ALL}---${cilium('egress: [{}]')}`), {
    ...{ denied: [otherIngress, ownEgress, otherEgress], counts: [1, 0] },
  })
})

test('POST /networkpolicy/try 200: pods that are gone may have run on the node that they talked to', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const web = (name: string, ip: string) =>
    podOf({ namespace: 'shop', name, ip, workload: 'Deployment/web', labels: { app: 'web' }, node: 'node-1' })
  const node = (name: string, ip: string) =>
    podOf({ namespace: 'kube-system', name: `proxy-${name}`, ip, node: name, hostNetwork: true })
  const [living, gone] = [web('web-1', '10.1.0.1'), web('web-0', '10.1.0.2')]
  const flows = [living, gone].flatMap((pod) => [
    flowOf(pod, 'INGRESS', '192.168.0.1', '80'),
    flowOf(pod, 'INGRESS', '192.168.0.2', '81'),
  ])
  await seed(own, [living, gone, node('node-1', '192.168.0.1'), node('node-2', '192.168.0.2')], [], flows)
  const trial = async () => (await own.request('POST', '/networkpolicy/try', { headers: yaml, body: DENY_ALL })).json
  const denied = ['192.168.0.2 > shop/Deployment/web:81 ingress']
  const known = await trial()
  assert.deepEqual([linesOf(known.deniedEdges), known.allowed, known.unknown], [denied, 1, 0])
  // After DEAD_POD_RETENTION_DAYS; edges stay longer.
  await own.sql`delete from pod where pod_name = 'web-0'`
  await own.sql`delete from pod_labels where pod_name = 'web-0'`
  const later = await trial()
  assert.deepEqual([linesOf(later.deniedEdges), later.allowed, later.unknown], [denied, 0, 1])
  assert.match(later.unknownReasons[0].reason, /on which node a pod that is gone ran/)
})

test('POST /networkpolicy/try 200: an agent on the host network may be on the node of the pod that it scrapes', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const web = podOf({ namespace: 'shop', name: 'web-1', ip: '10.1.0.1', labels: { app: 'web' } })
  const agent = podOf({
    ...{ namespace: 'mon', name: 'agent-1', ip: '192.168.0.1', workload: 'DaemonSet/agent', hostNetwork: true },
  })
  await seed(
    own,
    [web, agent],
    [],
    [flowOf(agent, 'EGRESS', '10.1.0.1', '80'), flowOf(web, 'INGRESS', '192.168.0.1', '80')],
  )
  const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body: DENY_ALL })
  assert.deepEqual([json.allowed, json.denied, json.unknown], [1, 0, 1])
})

test('POST /networkpolicy/try 200: ICMP is unknown to a NetworkPolicy, and its types to Cilium', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const [web, api] = ['web', 'api'].map((name, i) => podOf({ namespace: 'shop', name, ip: `10.1.0.${i + 1}` }))
  await seed(own, [web!, api!], [], [flowOf(web!, 'EGRESS', '10.1.0.2', '0', { ip_protocol: 'ICMP' })])
  const counts = async (body: string) => {
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body })
    return [json.allowed, json.denied, json.unknown]
  }
  const cilium = (spec: string) => `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: icmp, namespace: shop}
spec: {endpointSelector: {}, ${spec}}`
  const icmps = 'icmps: [{fields: [{type: 8, family: IPv4}]}]'
  assert.deepEqual(await counts(DENY_ALL), [0, 0, 1])
  assert.deepEqual(await counts(cilium('egress: [{}]')), [0, 1, 0])
  assert.deepEqual(await counts(cilium('egress: [{toEndpoints: [{}]}]')), [1, 0, 0])
  assert.deepEqual(await counts(cilium(`egress: [{toEndpoints: [{}], ${icmps}}]`)), [0, 0, 1])
  const deny = `egress: [{toEntities: [all]}], egressDeny: [{toEntities: [all], ${icmps}}]`
  assert.deepEqual(await counts(cilium(deny)), [0, 0, 1])
})

test('POST /networkpolicy/try 200: a pod may always talk to itself, by its address and by loopback', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const web = podOf({ namespace: 'shop', name: 'web-1', ip: '10.1.0.1', labels: { app: 'web' } })
  const itself = ['10.1.0.1', '127.0.0.1', '127.8.0.1', '::1'].map((ip, i) => flowOf(web, 'EGRESS', ip, `900${i}`))
  await seed(
    own,
    [web],
    [],
    [...itself, flowOf(web, 'INGRESS', '127.0.0.1', '9009'), flowOf(web, 'EGRESS', '1.1.1.1', '53')],
  )
  const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body: DENY_ALL })
  assert.deepEqual(linesOf(json.deniedEdges), ['shop/Pod/web-1 > 1.1.1.1:53 egress'])
  assert.deepEqual([json.evaluated, json.allowed, json.denied], [6, 5, 1])
})

test('POST /networkpolicy/try 200: flows tell which pods of a workload talked to themselves', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const member = (n: number) =>
    podOf({ namespace: 'shop', name: `db-${n}`, ip: `10.1.0.${n}`, workload: 'StatefulSet/db', labels: { app: 'db' } })
  const [first, second] = [member(1), member(2)]
  const service = serviceOf('shop', 'db', '10.96.0.7', { selector: { app: 'db' }, ports: [{ port: 5000 }] })
  const flows = [
    flowOf(first, 'EGRESS', '10.1.0.1', '8080'),
    flowOf(second, 'INGRESS', '10.1.0.2', '8080'),
    flowOf(first, 'EGRESS', '10.1.0.1', '9090'),
    flowOf(first, 'EGRESS', '10.1.0.2', '9090'),
    flowOf(first, 'EGRESS', '10.96.0.7', '5000'),
  ]
  await seed(own, [first, second], [service], flows)
  const trial = async () => (await own.request('POST', '/networkpolicy/try', { headers: yaml, body: DENY_ALL })).json
  const { deniedEdges, allowed, unknown, unknownReasons } = await trial()
  assert.deepEqual(linesOf(deniedEdges), ['shop/StatefulSet/db > shop/StatefulSet/db:9090 egress,ingress'])
  assert.equal(deniedEdges[0].flows, 1)
  assert.deepEqual([allowed, unknown], [1, 1], 'which pod is behind the service is not known')
  assert.match(unknownReasons[0].reason, /no policy denies a pod access to itself/)
  await own.sql`delete from traffic`
  const later = await trial()
  assert.deepEqual([later.allowed, later.denied, later.unknown], [0, 0, 3])
})

test('POST /networkpolicy/try 200: a service in front of two workloads is unknown where the policies treat them differently', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const pod = (name: string, ip: string, version: string) =>
    podOf({ namespace: 'shop', name, ip, workload: `Deployment/${name}`, labels: { app: 'web', version } })
  const client = podOf({ namespace: 'shop', name: 'client', ip: '10.1.0.7' })
  const service = serviceOf('shop', 'web', '10.96.0.7', {
    selector: { app: 'web' },
    ports: [{ port: 80, targetPort: 8080 }],
  })
  await seed(
    own,
    [pod('blue', '10.1.0.5', 'v1'), pod('green', '10.1.0.6', 'v2'), client],
    [service],
    [flowOf(client, 'EGRESS', '10.96.0.7', '80')],
  )
  const denying = (labels: string) => `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: shop}
spec: {podSelector: {matchLabels: {${labels}}}}`
  const counts = async (labels: string) => {
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body: denying(labels) })
    return [json.evaluated, json.denied, json.unknown]
  }
  assert.deepEqual(await counts('app: web'), [1, 1, 0])
  assert.deepEqual(await counts('version: v1'), [1, 0, 1])
  assert.deepEqual(await counts('version: v3'), [0, 0, 0])
})

test('POST /networkpolicy/try 200: where the policies treat the pods of a workload differently, flows tell', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const member = (n: number) =>
    podOf({
      ...{ namespace: 'shop', name: `db-${n}`, ip: `10.1.0.${n + 1}`, workload: 'StatefulSet/db' },
      labels: { app: 'db', 'statefulset.kubernetes.io/pod-name': `db-${n}` },
    })
  const [client, twin] = ['client', 'twin'].map((name, i) =>
    podOf({ namespace: 'shop', name, ip: `10.1.0.${7 + i}`, workload: 'Deployment/client', labels: { app: 'client' } }),
  ) as [ReturnType<typeof podOf>, ReturnType<typeof podOf>]
  const calls = [0, 0, 1].map((n, i) =>
    flowOf(i === 0 ? twin : client, 'EGRESS', `10.1.0.${n + 1}`, '5432', { pod_port: String(i) }),
  )
  await seed(own, [member(0), member(1), client, twin], [], calls)
  const policy = (name: string) => `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: shop}
spec: {podSelector: {matchLabels: {statefulset.kubernetes.io/pod-name: ${name}}}}`
  const trial = async (name: string) =>
    (await own.request('POST', '/networkpolicy/try', { headers: yaml, body: policy(name) })).json
  assert.deepEqual([(await trial('db-0')).deniedEdges[0].flows, (await trial('db-1')).deniedEdges[0].flows], [2, 1])
  const byAddress = await own.request('POST', '/networkpolicy/try', {
    headers: yaml,
    body: `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: first-only, namespace: shop}
spec: {podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.1.0.1/32}}]}]}`,
  })
  assert.deepEqual([byAddress.json.denied, byAddress.json.deniedEdges[0].flows], [1, 1])
  await own.sql`delete from traffic where traffic_in_out_ip = '10.1.0.2'`
  const { denied, unknown, unknownReasons } = await trial('db-1')
  assert.deepEqual([denied, unknown], [0, 1])
  assert.match(unknownReasons[0].reason, /no longer stored/)
})

test('POST /networkpolicy/try 200: pods that are gone have no labels to judge by', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const client = podOf({ namespace: 'shop', name: 'client', ip: '10.1.0.7', labels: { app: 'client' } })
  const gone = podOf({ namespace: 'shop', name: 'gone', ip: '10.1.0.8', labels: { app: 'gone' } })
  await seed(own, [client, gone], [], [flowOf(client, 'EGRESS', '10.1.0.8', '80')])
  await own.sql`delete from pod where pod_name = 'gone'`
  const { json } = await own.request('POST', '/networkpolicy/try', {
    headers: yaml,
    body: API.replace('app: api', 'app: gone'),
  })
  assert.deepEqual([json.evaluated, json.unknown], [1, 1])
  assert.match(JSON.stringify(json.unknownReasons), /no pod of a workload is known any more/)
})

test('POST /networkpolicy/try 200: labels that no manifest was posted of are unknown, not absent', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const [web, api] = ['web', 'api'].map((name, i) => {
    const { pod_obj: _, ...pod } = podOf({
      ...{ namespace: 'shop', name, ip: `10.1.0.${i + 1}`, workload: `Deployment/${name}`, selector: { app: name } },
    })
    return pod as ReturnType<typeof podOf>
  })
  await seed(own, [web!, api!], [], [flowOf(api!, 'INGRESS', '10.1.0.1', '80')])
  const counts = async (subject: string, from: string) => {
    const body = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: api, namespace: shop}
spec: {podSelector: ${subject}, ingress: [{from: [{podSelector: ${from}}]}]}`
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body })
    return [json.allowed, json.denied, json.unknown]
  }
  const is = (key: string, value: string) => `{matchLabels: {${key}: ${value}}}`
  assert.deepEqual(await counts(is('app', 'api'), is('app', 'web')), [1, 0, 0])
  assert.deepEqual(await counts(is('app', 'api'), is('app', 'db')), [0, 1, 0])
  assert.deepEqual(await counts(is('app', 'api'), is('tier', 'front')), [0, 0, 1])
  assert.deepEqual(
    await counts(is('app', 'api'), '{matchExpressions: [{key: tier, operator: DoesNotExist}]}'),
    [0, 0, 1],
  )
  assert.deepEqual(await counts(is('tier', 'front'), is('app', 'db')), [0, 0, 1])
  assert.deepEqual(await counts(is('app', 'web'), is('app', 'db')), [0, 0, 0])
})

test('POST /networkpolicy/try 200: a named port is the first of its name and protocol', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const web = podOf({ namespace: 'shop', name: 'web', ip: '10.1.0.1' })
  const api = podOf({ namespace: 'shop', name: 'api', ip: '10.1.0.2', labels: { app: 'api' } })
  const spec = {
    containers: [
      {
        name: 'app',
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'log', containerPort: 1514 },
        ],
      },
      {
        name: 'proxy',
        ports: [
          { name: 'http', containerPort: 9090 },
          { name: 'log', containerPort: 5514, protocol: 'UDP' },
        ],
      },
    ],
  }
  const ports = [
    { port: 80, targetPort: 'http' },
    { port: 514, targetPort: 'log' },
  ]
  const service = serviceOf('shop', 'api', '10.96.0.1', { selector: { app: 'api' }, ports })
  const flows = ['80', '514'].map((port) => flowOf(web, 'EGRESS', '10.96.0.1', port))
  await seed(own, [web, { ...api, pod_obj: { ...api.pod_obj, spec } }], [service], flows)
  const policy = (to: string) => `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: api, namespace: shop}
spec: {podSelector: {matchLabels: {app: api}}, ingress: [{ports: [{port: ${to}}]}]}`
  const denied = async (to: string) =>
    linesOf((await own.request('POST', '/networkpolicy/try', { headers: yaml, body: policy(to) })).json.deniedEdges)
  const [http, log] = [8080, 1514].map((port) => `shop/Pod/web > shop/Pod/api:${port} ingress`)
  assert.deepEqual(await denied('8080'), [log])
  assert.deepEqual(await denied('1514'), [http])
  assert.deepEqual(await denied('http'), [log])
  assert.deepEqual(await denied('log'), [http])
})

test('POST /networkpolicy/try 200: the port behind a service without a selector is that of its endpoints', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const web = podOf({ namespace: 'shop', name: 'web', ip: '10.1.0.1', labels: { app: 'web' } })
  const service = serviceOf('shop', 'ext', '10.96.0.1', { ports: [{ port: 80 }] })
  await seed(own, [web], [service], [flowOf(web, 'EGRESS', '10.96.0.1', '80')])
  const counts = async (rule: string) => {
    const body = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec: {podSelector: {}, policyTypes: [Egress], egress: [${rule}]}`
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body })
    return [json.allowed, json.denied, json.unknown]
  }
  assert.deepEqual(await counts('{ports: [{port: 80}]}'), [0, 0, 1])
  assert.deepEqual(await counts('{ports: [{port: 9376}]}'), [0, 0, 1])
  assert.deepEqual(await counts('{ports: [{protocol: UDP}]}'), [0, 1, 0])
  assert.deepEqual(await counts('{}'), [1, 0, 0])
})

test('POST /networkpolicy/try 200: a service is judged at those pods of a workload that it selects', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const web = podOf({ namespace: 'shop', name: 'web', ip: '10.1.0.9', labels: { app: 'web' } })
  const member = (n: number, role: string) =>
    podOf({
      namespace: 'shop',
      name: `pg-${n}`,
      ip: `10.1.0.${n}`,
      workload: 'StatefulSet/pg',
      labels: { app: 'pg', role },
    })
  const service = serviceOf('shop', 'pg', '10.96.0.1', { selector: { role: 'master' }, ports: [{ port: 5432 }] })
  await seed(
    own,
    [web, member(1, 'master'), member(2, 'replica')],
    [service],
    [flowOf(web, 'EGRESS', '10.96.0.1', '5432')],
  )
  const trial = async (role: string) => {
    const body = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Egress]
  egress: [{to: [{podSelector: {matchLabels: {role: ${role}}}}]}]`
    const { json } = await own.request('POST', '/networkpolicy/try', { headers: yaml, body })
    return [json.allowed, json.unknown, ...linesOf(json.deniedEdges)]
  }
  assert.deepEqual(await trial('master'), [1, 0])
  assert.deepEqual(await trial('replica'), [0, 0, 'shop/Pod/web > shop/pg:5432 egress'])
})

test('POST /networkpolicy/try 400: names the document, the path and the rule', async () => {
  const refusals: [body: string, query: string, contentType: string, says: string][] = [
    [
      `${DENY_ALL}---${API.replace('port: http', 'port: 70000')}`,
      '',
      'application/yaml',
      'document 2: spec.ingress[0].ports[0].port',
    ],
    [DENY_ALL.replace('NetworkPolicy', 'Deployment'), '', 'application/yaml', 'document 1: kind'],
    ['{"kind": "List"', '', 'application/json', 'invalid JSON'],
    [DENY_ALL, '', 'text/plain', 'expected application/yaml or application/json'],
    [DENY_ALL, '?since=yesterday', 'application/yaml', 'since'],
    [DENY_ALL, '?since=1d&until=2d', 'application/yaml', 'until'],
    [DENY_ALL, '?from=1', 'application/yaml', 'from'],
  ]
  for (const [body, query, contentType, says] of refusals) {
    const { status, text } = await tries(body, query, { authorization, 'content-type': contentType })
    assert.equal(status, 400, text)
    assert.ok(text.includes(says), text)
  }
})

test('POST /networkpolicy/try 400: more peers than can be compared with so many edges', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  await own.sql`
    insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, traffic_in_out_ip,
                           is_public, port, ip_protocol, decision, flows, pods, first_seen_at, last_new_at, counted_at)
    select gen_random_uuid(), 'EGRESS', 'shop', 'Deployment', 'web', '93.184.0.' || n % 200, true, n::text, 'TCP', 'ALLOW',
           1, 1, now() - interval '1 day', now() - interval '1 day', now()
    from generate_series(1, 3000) n`
  const to = Array.from({ length: 9_000 }, (_, n) => ({ ipBlock: { cidr: `20.0.${n >> 8}.${n & 255}/32` } }))
  const policy = {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'wide', namespace: 'shop' } },
    spec: { podSelector: {}, policyTypes: ['Egress'], egress: [{ to }] },
  }
  const json = { authorization, 'content-type': 'application/json' }
  const asks = (query: string) =>
    own.request('POST', `/networkpolicy/try${query}`, { headers: json, body: JSON.stringify(policy) })
  const { status, text } = await asks('')
  assert.deepEqual(
    [status, text],
    [400, 'too many peers and ports for so many edges: narrow them with namespace, since or until'],
  )
  assert.equal((await asks('?since=1h')).status, 200)
})

test('POST /networkpolicy/try 401: without a token', async () => {
  assertUnauthorized(await tries(DENY_ALL, '', { 'content-type': 'application/yaml' }))
})

test('POST /networkpolicy/try 413: more than a MiB', async () => {
  assert.equal((await tries(`#${' '.repeat(1024 * 1024)}`)).status, 413)
})

test('POST /networkpolicy/try 503: the database cancels the statement', async () => {
  await whileRefused(app.sql, 'flow_edge', async () => assertDatabaseBusy(await tries(DENY_ALL)))
})

test('POST /networkpolicy/try 503: the stored flows are not counted yet', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  await own.sql`update flow_edge_cursor set as_of = null`
  const answer = await own.request('POST', '/networkpolicy/try', { headers: yaml, body: DENY_ALL })
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '30'])
})
