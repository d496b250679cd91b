import assert from 'node:assert/strict'
import test from 'node:test'
import { parsePolicies } from '../../lib/policies/parse.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { countEdges, daysAgo, flowOf, podOf, SHOP, seed, seedShop, serviceOf } from '../support/policy-cluster.ts'
import { assertDatabaseBusy, assertNoData, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
await seedShop(app)
const authorization = `Bearer ${TOKENS.BROKER_TOKEN_READ}`
const get = (workload: string, query = '', headers: Record<string, string> = {}) =>
  app.get(`/workloads/${workload}/networkpolicy${query}`, { headers: { authorization, ...headers } })

/** The rules of a NetworkPolicy in JSON: `ingress app=web:http/TCP`. */
interface Rule {
  from?: Peer[]
  to?: Peer[]
  ports: { port?: number | string; protocol: string }[]
}
interface Peer {
  podSelector?: { matchLabels: Record<string, string> }
  namespaceSelector?: { matchLabels: Record<string, string> }
  ipBlock?: { cidr: string }
}
const peerText = ({ podSelector, namespaceSelector, ipBlock }: Peer) =>
  [
    ...Object.values(namespaceSelector?.matchLabels ?? {}),
    ...Object.values(podSelector?.matchLabels ?? {}),
    ipBlock?.cidr,
  ]
    .filter(Boolean)
    .join('/')
const rulesOf = ({ spec }: { spec: { ingress?: Rule[]; egress?: Rule[] } }) =>
  (['ingress', 'egress'] as const).flatMap((direction) =>
    (spec[direction] ?? []).map(({ from, to, ports }) => {
      const peers = (from ?? to ?? []).map(peerText)
      return `${direction} ${peers.join() || 'everyone'}:${ports.map(({ port, protocol }) => `${port ?? '*'}/${protocol}`)}`
    }),
  )

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: what was seen from both ends, on the ports of the pods', async () => {
  const { status, json, text } = await get('shop/Deployment/api', '?output=json')
  assert.equal(status, 200, text)
  assert.deepEqual(json.spec.podSelector, { matchLabels: { app: 'api' } })
  assert.deepEqual(rulesOf(json), [
    'ingress monitoring/prometheus:9090/TCP',
    'ingress web:http/TCP',
    'egress kube-system/kube-dns:53/TCP,53/UDP',
    'egress 93.184.216.34/32:443/TCP',
    'egress db:5432/TCP',
  ])
  const coredns = await get('kube-system/Deployment/coredns', '?output=json&direction=ingress&min_days=0')
  assert.deepEqual(rulesOf(coredns.json), ['ingress shop/web:53/UDP'], 'agents report no ingress of UDP')
  assert.deepEqual(coredns.json.spec.policyTypes, ['Ingress'])
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: YAML with comments, in either format, which can be tried', async () => {
  for (const format of ['kubernetes', 'cilium']) {
    const { text, headers } = await get('shop/Deployment/web', `?format=${format}`)
    assert.equal(headers.get('content-type'), 'application/yaml')
    assert.deepEqual(
      ['level', 'complete'].map((name) => headers.get(`x-kguardian-capture-${name}`)),
      ['full', 'true'],
    )
    assert.match(text, /^# Network policy .*\n# Workload: shop Deployment\/web\n/)
    assert.match(
      text,
      /^# NOTE: dropped, so not allowed: shop\/Deployment\/web to shop\/StatefulSet\/db on 5432\/TCP$/m,
    )
    assert.equal((await parsePolicies(text, 'yaml')).length, 1)
    const trial = await app.request('POST', '/networkpolicy/try', {
      ...{ headers: { authorization, 'content-type': 'application/yaml' }, body: text },
    })
    assert.deepEqual([trial.json.evaluated, trial.json.allowed], [3, 3])
  }
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 304: the same edges give the same text', async () => {
  const { headers } = await get('shop/Deployment/api')
  const again = await get('shop/Deployment/api', '', { 'if-none-match': headers.get('etag')! })
  assert.deepEqual([again.status, again.text], [304, ''])
  assert.notEqual((await get('shop/Deployment/web')).headers.get('etag'), headers.get('etag'))
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: of older flows, only what was new since', async () => {
  const { text } = await get('shop/Deployment/api', '?since=1d&acknowledgePartial=true')
  assert.match(text, /a pod does not report a connection again/)
  assert.doesNotMatch(text, /port: 9090/)
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 400: names the parameter and the rule', async () => {
  for (const [query, says] of [
    ['format=calico', 'format: expected kubernetes or cilium'],
    ['direction=out', 'direction: expected both, ingress or egress'],
    ['cidr=16', 'cidr: expected exact or 24'],
    ['output=xml', 'output: expected yaml or json'],
    ['min_days=-1', 'min_days: expected 0 to 365'],
    ['min_days=366', 'min_days: expected 0 to 365'],
    ['since=monday', 'since: expected a time'],
    ['until=1d', 'until'],
  ]) {
    const { status, text } = await get('shop/Deployment/api', `?${query}`)
    assert.equal(status, 400, query)
    assert.ok(text.includes(says!), text)
  }
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 401: without a token', async () => {
  assertUnauthorized(await app.get('/workloads/shop/Deployment/api/networkpolicy'))
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 404: nobody knows the workload', async () => {
  assertNoData(await get('shop/Deployment/nobody'))
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 409: what was seen is not complete, unless it is acknowledged', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const young = podOf({ namespace: 'shop', name: 'young', ip: '10.1.0.1', labels: { app: 'young' } })
  const silent = podOf({
    ...{ namespace: 'shop', name: 'silent', ip: '10.1.0.2', labels: { app: 'silent' }, node: 'node-9' },
    more: { time_stamp: daysAgo(2) },
  })
  const idle = podOf({ namespace: 'shop', name: 'idle', ip: '10.1.0.3', labels: { app: 'idle' } })
  const host = podOf({ namespace: 'shop', name: 'host', ip: '192.168.0.1', labels: { app: 'host' }, hostNetwork: true })
  const calls = (pod: ReturnType<typeof podOf>, days: number) =>
    flowOf(pod, 'EGRESS', '93.184.216.34', '443', { time_stamp: daysAgo(days) })
  await seed(own, [young, silent, idle, host], [], [calls(young, 1), calls(silent, 10), calls(host, 10)])
  const asks = (name: string, query = '') => own.get(`/workloads/shop/Pod/${name}/networkpolicy${query}`)
  for (const [name, says] of [
    ['young', /^refused: shop\/Pod\/young: observed since .*, which is less than 7 days$/m],
    ['silent', /^refused: shop\/Pod\/silent: nodes of its pods are silent: node-9$/m],
    ['idle', /^refused: shop\/Pod\/idle: nothing was observed$/m],
    ['host', /^refused: shop\/Pod\/host: it uses the host network/m],
  ] as const) {
    const refused = await asks(name)
    assert.equal(refused.status, 409, refused.text)
    assert.match(refused.text, says)
    assert.match(refused.text, /acknowledgePartial=true/)
    assert.equal(refused.headers.get('x-kguardian-capture-complete'), 'false')
    const { status, json, headers } = await asks(name, '?acknowledgePartial=true&output=json')
    assert.deepEqual([status, headers.get('x-kguardian-capture-level')], [200, 'unknown'])
    assert.equal(json.metadata.annotations['kguardian.dev/capture-complete'], 'false')
    assert.match(json.metadata.annotations['kguardian.dev/capture-warning'], /not complete/)
  }
  assert.equal((await asks('young', '?min_days=0')).status, 200)
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 409: no labels select the workload alone', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const twin = (name: string, ip: string) =>
    podOf({
      namespace: 'shop',
      name,
      ip,
      workload: `Deployment/${name}`,
      labels: { app: 'web', 'pod-template-hash': name },
    })
  const blue = twin('blue', '10.1.0.1')
  await seed(own, [blue, twin('green', '10.1.0.2')], [], [flowOf(blue, 'EGRESS', '93.184.216.34', '443')])
  const { status, text } = await own.get('/workloads/shop/Deployment/blue/networkpolicy?acknowledgePartial=true')
  assert.equal(status, 409)
  assert.equal(
    text,
    'refused: no labels select shop/Deployment/blue alone: its pods share them with those of shop/Deployment/green\n',
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: a pod whose workload became known later', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const first = podOf({ namespace: 'shop', name: 'late-1', ip: '10.1.0.1', labels: { app: 'late' } })
  const owned = {
    ...first,
    pod_obj: { metadata: { ...first.pod_obj.metadata, ownerReferences: [{ kind: 'ReplicaSet' }] } },
  }
  await seed(own, [owned], [], [flowOf(first, 'EGRESS', '93.184.216.34', '443')])
  await own.post('/pod/spec', { ...owned, workload_kind: 'Deployment', workload_name: 'late' })
  const { status, json } = await own.get('/workloads/shop/Deployment/late/networkpolicy?output=json&direction=egress')
  assert.equal(status, 200)
  assert.ok(rulesOf(json).includes('egress 93.184.216.34/32:443/TCP'))
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: says that some connections are never stored', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const pod = (name: string, workload: string, more = {}) =>
    podOf({ namespace: 'shop', name, ip: '10.1.0.1', workload, labels: { app: name }, more })
  const agent = podOf({ namespace: 'mon', name: 'agent-1', ip: '192.168.0.1', hostNetwork: true })
  const web = pod('web', 'Deployment/web')
  const ofWeb = (port: string, protocol: string) =>
    flowOf(web, 'EGRESS', '192.168.0.1', port, { ip_protocol: protocol, decision: 'ALLOW' })
  await seed(own, [agent, web], [], [ofWeb('8126', 'TCP'), ofWeb('8125', 'UDP')])
  const { text } = await own.get('/workloads/shop/Deployment/web/networkpolicy?direction=egress')
  assert.match(text, /port: 8126/)
  assert.doesNotMatch(text, /8125/)
  assert.match(text, /^# .*UDP of a pod to an address with which it had another connection\n# before/m)

  const report = pod('report', 'CronJob/report', { started_at: daysAgo(1) })
  const flow = flowOf(report, 'EGRESS', '192.168.0.1', '8126', { time_stamp: daysAgo(0, '00:00:00') })
  await seed(own, [{ ...web, is_dead: true }, report], [], [flow])
  const refused = await own.get('/workloads/shop/CronJob/report/networkpolicy')
  assert.match(refused.text, /^refused: shop\/CronJob\/report: nothing was observed$/m)
  const made = await own.get('/workloads/shop/CronJob/report/networkpolicy?acknowledgePartial=true')
  assert.match(made.text, /^# .*a connection that an earlier pod with the same address had, too\.$/m)
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: a public resolver is none of the cluster', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const pod = (name: string, more = {}) =>
    podOf({ namespace: 'shop', name, ip: '10.1.0.1', workload: `Deployment/${name}`, labels: { app: name }, more })
  const dns = (of: ReturnType<typeof podOf>, ip: string, day: number) =>
    flowOf(of, 'EGRESS', ip, '53', { ip_protocol: 'UDP', time_stamp: daysAgo(day) })
  const [before, certs] = [pod('before'), pod('certs', { started_at: daysAgo(9) })]
  const kubeDns = serviceOf('kube-system', 'kube-dns', '10.96.0.10', {
    selector: { 'k8s-app': 'kube-dns' },
    ports: [{ port: 53, protocol: 'UDP', targetPort: 53 }],
  })
  await seed(own, [before], [kubeDns], [dns(before, '10.96.0.10', 10)])
  // The first flow is stored as one of the earlier pod with this address.
  await seed(own, [{ ...before, is_dead: true }, certs], [], [dns(certs, '10.96.0.10', 8), dns(certs, '8.8.8.8', 8)])
  const { json } = await own.get('/workloads/shop/Deployment/certs/networkpolicy?output=json&direction=egress')
  assert.ok(
    rulesOf(json).some((one) => /kube-system\/kube-dns.*53\/UDP/.test(one)),
    rulesOf(json).join(),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: a service with two workloads behind it is ingress of both', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const track = (name: string, ip: string) =>
    podOf({ namespace: 'shop', name, ip, workload: `Deployment/${name}`, labels: { app: 'web', track: name } })
  const client = podOf({ namespace: 'shop', name: 'client', ip: '10.1.0.9', labels: { app: 'client' } })
  const web = serviceOf('shop', 'web', '10.96.0.1', {
    selector: { app: 'web' },
    ports: [{ port: 80, targetPort: 8080 }],
  })
  await seed(
    own,
    [track('stable', '10.1.0.1'), track('canary', '10.1.0.2'), client],
    [web],
    [flowOf(client, 'EGRESS', '10.96.0.1', '80')],
  )
  const query = 'output=json&direction=ingress&min_days=0'
  for (const name of ['stable', 'canary']) {
    const { json } = await own.get(`/workloads/shop/Deployment/${name}/networkpolicy?${query}`)
    assert.deepEqual([json.spec.podSelector.matchLabels, rulesOf(json)], [{ track: name }, ['ingress client:8080/TCP']])
  }
  const { json } = await own.get('/workloads/shop/Pod/client/networkpolicy?output=json&direction=egress')
  assert.ok(rulesOf(json).includes('egress web:8080/TCP'), 'by the selector of the service')
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 503: the database cancels the statement', async () => {
  await whileRefused(app.sql, 'flow_edge', async () => assertDatabaseBusy(await get('shop/Deployment/api')))
})

test('GET /workloads/{namespace}/{kind}/{name}/networkpolicy 200: replicas and later counts do not change the text', async () => {
  const before = await get('shop/Deployment/api')
  await app.post('/pod/traffic/batch', [flowOf(SHOP.api, 'EGRESS', '93.184.216.34', '443', { pod_port: '7' })], {
    headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` },
  })
  await countEdges(app)
  assert.equal((await get('shop/Deployment/api')).text, before.text)
})
