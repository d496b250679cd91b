import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp(TOKENS)
const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
const ingest = { headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` } }
const get = (query: string) => app.get(`/flows/hints?${query}`, { headers })
const values = async (query: string) => {
  const answer = await get(query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.values as string[]
}

const time_stamp = '2026-03-01T10:00:00'
for (const [pod_namespace, pod_name, pod_ip, workload] of [
  ['shop', 'web-1', '10.0.0.1', 'web'],
  ['shop', 'web-2', '10.0.0.2', 'web'],
  ['shop', 'db-0', 'fd00::1', 'db'],
  ['shop-2', 'web-1-b', '10.0.1.1', 'web'],
  ['kube-system', 'dns', '10.0.2.1', null],
] as const)
  assert.equal(
    (
      await app.post(
        '/pod/spec',
        {
          ...{ pod_namespace, pod_name, pod_ip, time_stamp, node_name: `node-${pod_ip.at(-1)}`, is_dead: false },
          ...{ workload_kind: workload && 'Deployment', workload_name: workload, started_at: time_stamp },
          pod_obj: { metadata: { uid: pod_name, labels: { app: workload ?? 'dns', 'a/b': pod_name } } },
        },
        ingest,
      )
    ).status,
    200,
  )
for (const [svc_ip, svc_namespace, svc_name] of [
  ['10.96.0.1', 'default', 'kubernetes'],
  ['10.96.0.2', 'shop', 'web'],
  ['10.96.0.3', 'shop', 'web'],
])
  await app.post('/svc/spec', { svc_ip, svc_namespace, svc_name, time_stamp }, ingest)
await app.post(
  '/pod/traffic/batch',
  [
    { uuid: 'a', traffic_type: 'EGRESS', traffic_in_out_ip: '140.82.112.3', traffic_in_out_port: '443', time_stamp },
    { uuid: 'b', traffic_type: 'INGRESS', traffic_in_out_ip: '10.0.0.1', pod_port: '4430', time_stamp },
    { uuid: 'c', traffic_type: 'EGRESS', traffic_in_out_ip: 'odd', traffic_in_out_port: 'http', time_stamp },
  ],
  ingest,
)

for (const [query, expected] of [
  ['field=namespace', ['default', 'kube-system', 'shop', 'shop-2']],
  ['field=namespace&prefix=sh', ['shop', 'shop-2']],
  ['field=namespace&prefix=shop-', ['shop-2']],
  ['field=namespace&prefix=x', []],
  ['field=pod', ['kube-system/dns', 'shop-2/web-1-b', 'shop/db-0', 'shop/web-1', 'shop/web-2']],
  ['field=pod&prefix=shop', ['shop-2/web-1-b', 'shop/db-0', 'shop/web-1', 'shop/web-2']],
  ['field=pod&prefix=shop/w', ['shop/web-1', 'shop/web-2']],
  ['field=workload&prefix=shop/', ['shop/Deployment/db', 'shop/Deployment/web']],
  ['field=workload&prefix=shop/w', ['shop/Deployment/web']],
  ['field=workload&prefix=shop/Deployment/d', ['shop/Deployment/db']],
  ['field=service', ['default/kubernetes', 'shop/web']],
  ['field=service&prefix=default/k', ['default/kubernetes']],
  ['field=node', ['node-1', 'node-2']],
  ['field=ip&prefix=10.0.0', ['10.0.0.1', '10.0.0.2']],
  ['field=ip&prefix=140', ['140.82.112.3']],
  ['field=port', ['443', '4430']],
  ['field=label&prefix=app', ['app=db', 'app=dns', 'app=web']],
  ['field=label&prefix=a/b=web', ['a/b=web-1', 'a/b=web-1-b', 'a/b=web-2']],
  ['field=verdict&prefix=d', ['DROP']],
  ['field=peer', ['pod', 'service', 'node', 'external', 'unresolved']],
] as const)
  test(`GET /flows/hints 200: ${query}`, async () => {
    assert.deepEqual(await values(query), expected)
  })

test('GET /flows/hints 200: at most 50 values', async () => {
  await app.sql`insert into pod_address (ip, pod_name) select '172.16.0.' || n, 'web-1' from generate_series(1, 60) n`
  const found = await values('field=ip&prefix=172.')
  assert.equal(found.length, 50)
  assert.deepEqual(found, [...found].sort())
})

for (const [query, text] of [
  ['', /field: /],
  ['field=nothing', /field: Invalid option: expected one of "namespace"\|"workload"/],
  ['field=pod&prefix=%00', /prefix: U\+0000 is not allowed/],
  [`field=pod&prefix=${'a'.repeat(507)}`, /prefix: /],
  ['field=pod&x=1', /x: not known here/],
] as const)
  test(`GET /flows/hints 400: ${query.slice(0, 40)}`, async () => {
    const answer = await get(query)
    assert.equal(answer.status, 400)
    assert.match(answer.text, text)
  })

test('GET /flows/hints 401: without a token', async () => {
  assertUnauthorized(await app.get('/flows/hints?field=pod'))
})

test('GET /flows/hints 503: the database cancels the statement', async () => {
  await whileRefused(app.sql, 'pod', async () => assertDatabaseBusy(await get('field=node')))
})
