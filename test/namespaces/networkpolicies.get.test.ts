import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { flowOf, podOf, seed, seedShop } from '../support/policy-cluster.ts'
import { assertDatabaseBusy, assertNoData, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
await seedShop(app)
const authorization = `Bearer ${TOKENS.BROKER_TOKEN_READ}`
const get = (namespace: string, query = '', headers: Record<string, string> = {}) =>
  app.get(`/namespaces/${namespace}/networkpolicies${query}`, { headers: { authorization, ...headers } })
const tries = async (body: string) => {
  const headers = { authorization, 'content-type': 'application/yaml' }
  return (await app.request('POST', '/networkpolicy/try', { headers, body })).json
}
const namesOf = (yaml: string) => [...yaml.matchAll(/^ {2}name: (.*)$/gm)].map(([, name]) => name)

test('GET /namespaces/{namespace}/networkpolicies 200: a default deny first, and together they allow all that was seen', async () => {
  for (const format of ['kubernetes', 'cilium']) {
    const { status, text } = await get('shop', `?format=${format}`)
    assert.equal(status, 200, text)
    assert.deepEqual(namesOf(text), ['default-deny', 'api-deployment', 'web-deployment', 'db-statefulset'])
    const { evaluated, denied, policies } = await tries(text)
    assert.deepEqual([evaluated, denied, policies.length], [6, 0, 4])
    const [first] = text.split('---\n')
    assert.equal((await tries(first!)).denied, 6)
  }
})

test('GET /namespaces/{namespace}/networkpolicies 200: as a List in JSON, in one direction', async () => {
  const { json } = await get('shop', '?output=json&direction=egress')
  assert.equal(json.kind, 'List')
  assert.deepEqual(json.items[0].spec, { podSelector: {}, policyTypes: ['Egress'] })
  assert.ok(json.items.every(({ spec }: { spec: object }) => !('ingress' in spec)))
})

test('GET /namespaces/{namespace}/networkpolicies 304: the same edges give the same text', async () => {
  const { headers } = await get('shop')
  assert.equal((await get('shop', '', { 'if-none-match': headers.get('etag')! })).status, 304)
})

test('GET /namespaces/{namespace}/networkpolicies 400: an unknown parameter', async () => {
  assert.equal((await get('shop', '?namespace=shop')).status, 400)
})

test('GET /namespaces/{namespace}/networkpolicies 401: without a token', async () => {
  assertUnauthorized(await app.get('/namespaces/shop/networkpolicies'))
})

test('GET /namespaces/{namespace}/networkpolicies 404: no pod of the namespace is known', async () => {
  assertNoData(await get('nowhere'))
})

test('GET /namespaces/{namespace}/networkpolicies 409: names each workload that cannot have its policy, and says so if it is acknowledged', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const pod = (name: string, ip: string, labels: Record<string, string>) =>
    podOf({ namespace: 'shop', name, ip, workload: `Deployment/${name}`, labels })
  const web = pod('web', '10.1.0.1', { app: 'web' })
  await seed(own, [web, pod('idle', '10.1.0.2', { app: 'idle' })], [], [flowOf(web, 'EGRESS', '93.184.216.34', '443')])
  const refused = await own.get('/namespaces/shop/networkpolicies')
  assert.equal(refused.status, 409)
  assert.match(refused.text, /^refused: shop\/Deployment\/idle: nothing was observed$/m)
  assert.doesNotMatch(refused.text, /Deployment\/web/)
  assert.equal((await own.get('/namespaces/shop/networkpolicies?acknowledgePartial=true')).status, 200)
  await seed(own, [pod('twin', '10.1.0.3', { app: 'web' })], [], [])
  const colliding = await own.get('/namespaces/shop/networkpolicies')
  assert.match(colliding.text, /^refused: no labels select shop\/Deployment\/web alone/m)
  assert.match(colliding.text, /^refused: shop\/Deployment\/idle: nothing was observed$/m)
  assert.match(colliding.text, /acknowledgePartial=true$/m)
  const { status, text, headers } = await own.get('/namespaces/shop/networkpolicies?acknowledgePartial=true')
  assert.deepEqual([status, headers.get('x-kguardian-capture-complete')], [200, 'false'])
  assert.match(text, /^# LEFT OUT, and cut off by this policy: refused: no labels select shop\/Deployment\/twin alone/m)
  assert.deepEqual(namesOf(text), ['default-deny', 'idle-deployment'])
  const { json } = await own.get('/namespaces/shop/networkpolicies?acknowledgePartial=true&output=json')
  assert.match(json.items[0].metadata.annotations['kguardian.dev/notes'], /^LEFT OUT.*Deployment\/twin alone/m)
})

test('GET /namespaces/{namespace}/networkpolicies 200: names the workloads that were seen, and of which no pod is left', async () => {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
  const pod = (name: string, ip: string, workload: string) =>
    podOf({ namespace: 'shop', name, ip, workload, labels: { app: name } })
  const [web, report] = [pod('web', '10.1.0.1', 'Deployment/web'), pod('report', '10.1.0.2', 'CronJob/report')]
  const flows = [flowOf(web, 'EGRESS', '93.184.216.34', '443'), flowOf(report, 'EGRESS', '93.184.216.34', '443')]
  await seed(own, [web, report], [], flows)
  assert.doesNotMatch((await own.get('/namespaces/shop/networkpolicies')).text, /LEFT OUT/)
  // After DEAD_POD_RETENTION_DAYS; edges stay longer, and the next run comes back.
  await own.sql`delete from pod where pod_name = 'report'`
  const { status, text } = await own.get('/namespaces/shop/networkpolicies')
  assert.deepEqual([status, namesOf(text)], [200, ['default-deny', 'web-deployment']])
  const says = 'LEFT OUT, and cut off by this policy: shop/CronJob/report: its connections were seen, but no pod of it'
  assert.ok(text.startsWith(`# ${says} is known any more\n`), text)
  const { json } = await own.get('/namespaces/shop/networkpolicies?output=json')
  assert.ok(json.items[0].metadata.annotations['kguardian.dev/notes'].startsWith(says))
})

test('GET /namespaces/{namespace}/networkpolicies 503: the database cancels the statement', async () => {
  await whileRefused(app.sql, 'flow_edge', async () => assertDatabaseBusy(await get('shop')))
})
