import assert from 'node:assert/strict'
import test from 'node:test'
import { flowEdges } from '../../jobs/flow-edges.ts'
import { lateResolve } from '../../jobs/late-resolve.ts'
import { isTooMany, readEdges } from '../../lib/flows/edges.ts'
import { readReporters } from '../../lib/flows/reporters.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { onlyFull } from '../support/depth.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { othersEnded } from '../support/transactions.ts'
import { becomes, until } from '../support/until.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }

type Fields = Record<string, unknown>
interface Edge {
  from: Fields
  to: Fields
  port: string
  verdict: string
  flows: number
  pods: number
  seenBy: string[]
  firstSeenAt: string
  lastNewAt: string
}

const get = (query = '', more: Record<string, string> = {}) =>
  app.get(`/flows/edges${query}`, { headers: { ...headers, ...more } })
async function page(query = '') {
  const answer = await get(query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as {
    items: Edge[]
    nextAfter: string | null
    asOf: string
    observedSince: string | null
    unstamped: number
  }
}

const sends = async (path: string, body: unknown) => {
  const answer = await app.post(path, body, { headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` } })
  assert.equal(answer.status, 200, answer.text)
}
async function run(of = app) {
  await othersEnded(of.sql)
  return flowEdges.run({ config: of.deps.config, db: of.db, log: of.deps.log, signal: new AbortController().signal })
}

/** `shop/Deployment/web > shop/StatefulSet/db:5432 ALLOW 2 flows of 2 pods from,to`, in the order of the page. */
const sideText = ({ kind, namespace, name, workload, ip }: Fields) =>
  kind === 'workload' || kind === 'namespace'
    ? [namespace, ...(kind === 'workload' ? [workload] : [])].join('/')
    : `${kind} ${[namespace, name, ip].filter((one) => one !== null).join('/')}`
const lineOf = ({ from, to, port, verdict, flows, pods, seenBy }: Edge) =>
  `${sideText(from)} > ${sideText(to)}:${port} ${verdict} ${flows} of ${pods} ${seenBy.join()}`
const lines = async (query = '') => (await page(query)).items.map(lineOf).sort()

/** A time of yesterday. */
const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
const T = (time: string) => `${YESTERDAY}T${time}`
const pod = (
  pod_namespace: string,
  pod_name: string,
  pod_ip: string,
  more: Fields = {},
  labels: Fields = {},
  ports: Fields[] = [],
) => ({
  ...{ pod_namespace, pod_name, pod_ip, node_name: 'node-1', is_dead: false, time_stamp: T('09:00:00') },
  started_at: T('08:00:00'),
  pod_obj: {
    metadata: {
      uid: `uid-${pod_name}`,
      labels,
      ownerReferences: 'workload_kind' in more ? [{ kind: 'ReplicaSet' }] : [],
    },
    spec: { containers: [{ name: 'main', ports }] },
  },
  ...more,
})
const WEB = { workload_kind: 'Deployment', workload_name: 'web' }
const DB = { workload_kind: 'StatefulSet', workload_name: 'db' }
for (const one of [
  pod('shop', 'web-1', '10.0.0.1', WEB, { app: 'web' }),
  pod('shop', 'web-2', '10.0.0.2', WEB, { app: 'web' }),
  pod('shop', 'db-0', '10.0.0.3', DB, { app: 'db' }, [{ name: 'sql', containerPort: 15432 }]),
  pod('tools', 'debug', '10.0.2.1'),
  pod('kube-system', 'proxy-1', '192.168.0.1', { host_network: true }),
])
  await sends('/pod/spec', one)
await sends('/svc/spec', {
  ...{ svc_ip: '10.96.0.5', svc_name: 'db', svc_namespace: 'shop', time_stamp: T('09:00:00') },
  service_spec: { spec: { selector: { app: 'db' }, ports: [{ port: 5432, targetPort: 'sql' }, { port: 80 }] } },
})

let seconds = 0
const flow = (pod_namespace: string | null, pod_name: string, pod_ip: string, more: Fields) => ({
  ...{
    uuid: `flow-${seconds}`,
    pod_name,
    pod_namespace,
    pod_ip,
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
  },
  ...{ decision: 'ALLOW', time_stamp: T(`10:00:${String(seconds++).padStart(2, '0')}`) },
  ...more,
})
const to = (traffic_in_out_ip: string | null, traffic_in_out_port: string, more: Fields = {}) => ({
  ...{ traffic_in_out_ip, traffic_in_out_port },
  ...more,
})
const from = (traffic_in_out_ip: string, pod_port: string) => ({
  ...{ traffic_type: 'INGRESS', traffic_in_out_ip, traffic_in_out_port: '0', pod_port },
})
await sends('/pod/traffic/batch', [
  flow('shop', 'web-1', '10.0.0.1', to('10.96.0.5', '5432')),
  flow('shop', 'web-2', '10.0.0.2', to('10.96.0.5', '5432')),
  flow('shop', 'db-0', '10.0.0.3', from('10.0.0.1', '15432')),
  flow('shop', 'web-1', '10.0.0.1', to('8.8.8.8', '443')),
  flow('shop', 'web-1', '10.0.0.1', to('8.8.8.9', '443')),
  flow('shop', 'web-1', '10.0.0.1', to('10.0.0.3', '22', { decision: 'DROP' })),
  flow('shop', 'db-0', '10.0.0.3', from('10.0.2.1', '15432')),
  flow('gone', 'old', '10.9.9.9', to('192.168.0.1', '10250')),
])

await run()

/** The edges of a cluster as it was posted. `web` calls `db` through a service; `db` sees it come. */
const OLD_NODE = 'pod gone/old > node 192.168.0.1:10250 ALLOW 1 of 1 from'
const OUT = ['8.8.8.8', '8.8.8.9'].map((ip) => `shop/Deployment/web > external ${ip}:443 ALLOW 1 of 1 from`)
const WEB_DB = 'shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 3 of 3 from,to'
const DROPPED = 'shop/Deployment/web > shop/StatefulSet/db:22 DROP 1 of 1 from'
const DEBUG = 'tools/Pod/debug > shop/StatefulSet/db:15432 ALLOW 1 of 1 to'

const CASES: [query: string, expected: string[]][] = [
  ['', [OLD_NODE, ...OUT, WEB_DB, DROPPED, DEBUG]],
  ['namespace=gone', [OLD_NODE]],
  ['to_namespace=shop', [WEB_DB, DROPPED, DEBUG]],
  ['from_workload=shop/web', [...OUT, WEB_DB, DROPPED]],
  // Through the service, too.
  ['to_workload=shop/StatefulSet/db', [WEB_DB, DROPPED, DEBUG]],
  ['workload=tools/Pod/debug', [DEBUG]],
  ['workload=!shop/db', [OLD_NODE, ...OUT]],
  ['service=shop/db', ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 2 of 2 from']],
  // The port of the service, and the port behind it.
  ['port=5432', ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 2 of 2 from']],
  ['port=15000-16000', [WEB_DB, DEBUG]],
  ['port=!15432', [OLD_NODE, ...OUT, DROPPED]],
  ['protocol=udp', []],
  ['verdict=drop', [DROPPED]],
  ['seen_by=to', ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 1 of 1 to', DEBUG]],
  ['peer=node', [OLD_NODE]],
  ['peer=service', ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 2 of 2 from']],
  ['peer=external', OUT],
  ['public=true', OUT],
  ['public=false', [OLD_NODE, WEB_DB, DROPPED, DEBUG]],
  // Counted from the flows themselves.
  ['pod=shop/web-2', ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 1 of 1 from']],
  ['to_pod=shop/db-0', ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 1 of 1 to', DROPPED, DEBUG]],
  ['label=app=web&verdict=DROP', [DROPPED]],
  ['node=node-1&to_workload=shop/db', [WEB_DB, DROPPED, DEBUG]],
  ['to_ip=8.8.8.8/32', [OUT[0]!]],
  // The address is that of the service, the workload and the port are behind it.
  ...['to_workload=shop/db', 'port=15432'].map((filter): [string, string[]] => [
    `ip=10.96.0.5&${filter}`,
    ['shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 2 of 2 from'],
  ]),
  [
    'ip=10.0.0.1&since=60h&until=1s',
    [...OUT, 'shop/Deployment/web > shop/StatefulSet/db:15432 ALLOW 2 of 2 from,to', DROPPED],
  ],
  // The shape of the answer.
  ['cidr=24&peer=external', ['shop/Deployment/web > external 8.8.8.0/24:443 ALLOW 2 of 1 from']],
  ['cidr=0&peer=external', ['shop/Deployment/web > external 0.0.0.0/0:443 ALLOW 2 of 1 from']],
  ['cidr=24&peer=node', [OLD_NODE]],
  [
    'group=namespace',
    [
      'gone > node 192.168.0.1:10250 ALLOW 1 of 1 from',
      ...['8.8.8.8', '8.8.8.9'].map((ip) => `shop > external ${ip}:443 ALLOW 1 of 1 from`),
      ...['shop > shop:15432 ALLOW 3 of 3 from,to', 'shop > shop:22 DROP 1 of 1 from'],
      'tools > shop:15432 ALLOW 1 of 1 to',
    ],
  ],
  [
    'group=service&to_workload=shop/db',
    [
      'shop/Deployment/web > service shop/db:15432 ALLOW 3 of 3 from,to',
      'shop/Deployment/web > service shop/db:22 DROP 1 of 1 from',
      'tools/Pod/debug > service shop/db:15432 ALLOW 1 of 1 to',
    ],
  ],
  [`since=${T('10:00:06')}`, [DEBUG, OLD_NODE]],
  [`since=${T('10:00:01')}&until=${T('10:00:02')}`, [WEB_DB]],
  [`until=${T('10:00:00')}`, []],
  ['since=1s', []],
]
for (const [query, expected] of CASES)
  test(`GET /flows/edges 200: ${query || 'no filter'}`, async () => {
    assert.deepEqual(await lines(`?${query}`), [...expected].sort())
  })

test('GET /flows/edges 200: an edge has both sides, all times, and what is not known as null', async () => {
  const { items, ...facts } = await page('?service=shop/db')
  const none = { name: null, ip: null }
  assert.deepEqual(items, [
    {
      from: { kind: 'workload', namespace: 'shop', workload: 'Deployment/web', ...none },
      to: { kind: 'workload', namespace: 'shop', workload: 'StatefulSet/db', ...none },
      ...{ port: '15432', protocol: 'TCP', verdict: 'ALLOW', flows: 2, pods: 2, seenBy: ['from'] },
      ...{ firstSeenAt: T('10:00:00'), lastNewAt: T('10:00:01') },
    },
  ])
  const [cursor] = await app.sql<{ as_of: string }[]>`
    select to_char(as_of, 'YYYY-MM-DD"T"HH24:MI:SS') as as_of from flow_edge_cursor`
  const { asOf, ...rest } = facts as Record<string, unknown>
  assert.equal(String(asOf).slice(0, 19), cursor!.as_of)
  assert.deepEqual(rest, { nextAfter: null, observedSince: T('10:00:00'), unstamped: 0 })
})

test('GET /flows/edges 200: with count_pods=false pods are null, and nothing else differs', async () => {
  for (const query of ['', 'group=namespace&order=flows', 'node=node-1']) {
    const counted = await page(`?${query}`)
    assert.ok(counted.items.length > 0 && counted.items.every(({ pods }) => pods !== null))
    const uncounted = await page(`?${query}&count_pods=false`)
    assert.deepEqual(
      uncounted.items,
      counted.items.map((edge) => ({ ...edge, pods: null })),
    )
  }
})

test('GET /flows/edges 200: flows whose workload was not recorded are counted, unless the rest decides', async () => {
  assert.equal((await page('?workload=gone/x')).unstamped, 1)
  assert.equal((await page('?workload=gone/x&verdict=DROP')).unstamped, 0)
  assert.equal((await page('?workload=gone/x&since=1s')).unstamped, 0)
  assert.equal((await page('?label=app=none')).unstamped, 1)
  assert.equal((await page('?workload=shop/x')).unstamped, 0)
})

for (const order of ['lastNewAt', 'flows'])
  for (const filter of ['', '&ip=0.0.0.0/0'])
    test(`GET /flows/edges 200: pages by ${order} have each edge once${filter && ', counted by the query'}`, async () => {
      const whole = (await page(`?order=${order}${filter}`)).items
      assert.equal(whole.length, 6)
      const keys = whole.map((one) => (order === 'flows' ? one.flows : Date.parse(one.lastNewAt)))
      assert.deepEqual(
        keys,
        [...keys].sort((a, b) => b - a),
      )
      const seen: Edge[] = []
      for (let after: string | null = ''; after !== null; ) {
        const found = await page(`?order=${order}${filter}&limit=2&after=${after}`)
        seen.push(...found.items)
        after = found.nextAfter
      }
      assert.deepEqual(seen, whole)
    })

test('GET /flows/edges 200: an edge that changes while a reader pages is not missed', async () => {
  const first = await page('?limit=2')
  assert.equal(first.items.length, 2)
  // It was the last one of the list and becomes the first one.
  await sends('/pod/traffic', flow('shop', 'web-2', '10.0.0.2', to('8.8.8.8', '443')))
  await run()
  const rest: Edge[] = []
  for (let after = first.nextAfter; after !== null; ) {
    const found: Awaited<ReturnType<typeof page>> = await page(`?limit=2&after=${after}`)
    rest.push(...found.items)
    after = found.nextAfter
  }
  const all = [...first.items, ...rest].map(lineOf)
  assert.deepEqual([...all].sort(), await lines())
  assert.equal(all.at(-1), 'shop/Deployment/web > external 8.8.8.8:443 ALLOW 2 of 2 from')
  await app.sql`delete from traffic where uuid = ${`flow-${seconds - 1}`}`
})

/** A cluster of `web-1` and `db-0`, whose flows a test posts, and the pages of its edges. */
async function shop(env: Record<string, string> = {}) {
  const own = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...env })
  const posts = async (path: string, body: unknown) => {
    const answer = await own.post(path, body)
    assert.equal(answer.status, 200, answer.text)
  }
  await posts('/pod/spec', pod('shop', 'web-1', '10.0.0.1', WEB, { app: 'web' }))
  const read = async (query: string) => {
    const answer = await own.get(`/flows/edges?${query}`)
    assert.equal(answer.status, 200, answer.text)
    const { items, ...facts } = answer.json as Awaited<ReturnType<typeof page>>
    return { ...facts, items, lines: items.map(lineOf) }
  }
  let nth = 0
  const flows = (...peers: Fields[]) =>
    posts(
      '/pod/traffic/batch',
      peers.map((peer) => ({ ...flow('shop', 'web-1', '10.0.0.1', peer), pod_port: `${++nth}` })),
    )
  return { ...own, posts, read, flows, pass: () => run(own) }
}
const WEB_TO = 'shop/Deployment/web >'
const DB_0 = (more: Fields = {}) => pod('shop', 'db-0', '10.0.0.3', more, { app: 'db' })

for (const filter of ['', '&node=node-1', '&group=service'])
  test(`GET /flows/edges 200: a workload that becomes known behind a service between two pages${filter}`, async () => {
    const own = await shop()
    const service = (app: string) =>
      own.posts('/svc/spec', {
        ...{ svc_ip: '10.96.0.5', svc_name: 'db', svc_namespace: 'shop', time_stamp: T('09:00:00') },
        service_spec: { spec: { selector: { app }, ports: [{ port: 5432 }] } },
      })
    await own.posts('/pod/spec', DB_0())
    await service('other')
    const [out, database, direct] = [to('8.8.8.8', '443'), to('10.96.0.5', '5432'), to('10.0.0.3', '5432')]
    await own.flows(out, out, out, database, database, direct, direct)
    await own.pass()
    const one = await own.read(`order=flows&limit=1${filter}`)
    assert.deepEqual(one.lines, [`${WEB_TO} external 8.8.8.8:443 ALLOW 3 of 1 from`])
    await service('db')
    await own.pass()
    const merged = `${WEB_TO} ${filter === '&group=service' ? 'service shop/db' : 'shop/Pod/db-0'}:5432 ALLOW 4 of 1 from`
    const two = await own.read(`order=flows&after=${one.nextAfter}${filter}`)
    assert.ok(two.lines.includes(merged), two.lines.join('\n'))
    // A list that begins now has it in its place.
    assert.equal((await own.read(`order=flows${filter}`)).lines[0], merged)
  })

test('GET /flows/edges 200: a peer that becomes known between two pages that count the flows themselves', async () => {
  const own = await shop()
  await own.posts('/pod/spec', DB_0())
  const [unknown, database] = [to('10.0.0.4', '5432'), to('10.0.0.3', '5432')]
  const recent = { time_stamp: new Date(Date.now() - 60_000).toISOString().slice(0, 19) }
  await own.flows(...[unknown, unknown, unknown, database, database].map((one) => ({ ...one, ...recent })))
  const one = await own.read('pod=shop/web-1&order=flows&limit=1')
  assert.deepEqual(one.lines, [`${WEB_TO} unresolved 10.0.0.4:5432 ALLOW 3 of 1 from`])
  await own.posts('/pod/spec', DB_0({ pod_ips: ['10.0.0.3', '10.0.0.4'] }))
  const { deps, db } = own
  await lateResolve.run({ config: deps.config, db, log: deps.log, signal: new AbortController().signal })
  const two = await own.read(`pod=shop/web-1&order=flows&after=${one.nextAfter}`)
  assert.deepEqual(two.lines, [`${WEB_TO} shop/Pod/db-0:5432 ALLOW 5 of 1 from`])
  assert.equal(two.nextAfter, null)
})

for (const filter of ['', '&pod=shop/web-1'])
  test(`GET /flows/edges 200: a distance from now is one time for all pages${filter}`, async () => {
    const own = await shop()
    const ago = (secs: number) => ({ time_stamp: new Date(Date.now() - secs * 1_000).toISOString().slice(0, -1) })
    const [first, second] = [to('8.8.8.8', '443'), to('8.8.8.9', '443')]
    await own.flows({ ...first, ...ago(50) }, { ...second, ...ago(60) }, { ...second, ...ago(1) })
    await own.pass()
    const whole = (await own.read(`until=15s${filter}`)).lines
    const one = await own.read(`until=15s${filter}&limit=1`)
    // As some time later.
    const two = await own.read(`until=0s${filter}&after=${one.nextAfter}`)
    assert.deepEqual([...one.lines, ...two.lines], whole)
    assert.equal(whole.length, 2)
  })

test('GET /flows/edges 200: all pages that count the flows themselves are as of the first one', async () => {
  const own = await shop()
  await own.flows(to('8.8.8.8', '443'), to('8.8.8.9', '443'))
  const one = await own.read('pod=shop/web-1&limit=1')
  await own.flows(to('8.8.4.4', '443'))
  const two = await own.read(`pod=shop/web-1&after=${one.nextAfter}`)
  assert.deepEqual([two.asOf, two.lines.length], [one.asOf, 1])
})

test('GET /flows/edges 200: edges begin with the first flow, also while its peer may still become known', async () => {
  const own = await shop()
  assert.equal((await own.read('')).observedSince, null)
  const time_stamp = new Date(Date.now() - 60_000).toISOString().slice(0, 19)
  await own.flows(to('10.0.0.4', '5432', { time_stamp }))
  await own.pass()
  const tried = await own.post('/networkpolicy/try', {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'none', namespace: 'shop' } },
    spec: { podSelector: {} },
  })
  assert.equal(tried.status, 200, tried.text)
  assert.deepEqual([(await own.read('')).observedSince, tried.json.observedSince], [time_stamp, time_stamp])
})

test('GET /flows/edges 304: `ETag` is equal for equal edges, also after another count', async () => {
  const first = await get('?verdict=DROP')
  const etag = first.headers.get('etag')!
  assert.equal((await get('?verdict=DROP', { 'if-none-match': etag })).status, 304)
  // Not always at the first time: a count ends at the oldest transaction that the server runs, of any database.
  await until('it counted again', async () => {
    await run()
    return (await page('?verdict=DROP')).asOf !== first.json.asOf
  })
  const later = await get('?verdict=DROP')
  assert.equal(later.headers.get('etag'), etag)
  assert.equal((await get('?verdict=DROP', { 'if-none-match': etag })).status, 304)
  assert.equal((await get('', { 'if-none-match': etag })).status, 200)
})

test('GET /flows/edges 200: names of any characters', async () => {
  const name = 'we"ird\\\x1f\x01{},é'
  await app.sql`insert into traffic (uuid, pod_name, pod_namespace, traffic_type, traffic_in_out_ip, traffic_in_out_port,
                                     ip_protocol, decision, time_stamp)
                values ('weird', ${name}, ${name}, 'EGRESS', '', ${name}, null, null, ${T('11:00:00')}::text::timestamp)`
  await run()
  const { items } = await page(`?namespace=${encodeURIComponent(name)}`)
  const none = { namespace: null, workload: null }
  assert.deepEqual(items, [
    {
      from: { kind: 'pod', name, ip: null, ...none, namespace: name },
      to: { kind: 'unresolved', name: null, ip: '', ...none },
      ...{ port: name, protocol: null, verdict: null, flows: 1, pods: 1, seenBy: ['from'] },
      ...{ firstSeenAt: T('11:00:00'), lastNewAt: T('11:00:00') },
    },
  ])
})

test('GET /flows/edges 200: flows without a port, and without the name of the pod that reported them', async () => {
  for (const [uuid, time] of [
    ['counted', T('11:00:00')],
    ['pending', new Date().toISOString().slice(0, 19)],
  ] as const) {
    await app.sql`insert into traffic (uuid, pod_namespace, traffic_type, traffic_in_out_ip, ip_protocol, decision, time_stamp)
                  values (${uuid}, 'bare', 'EGRESS', ${uuid}, 'TCP', 'ALLOW', ${time}::text::timestamp)`
  }
  await run()
  for (const query of ['?namespace=bare', '?namespace=bare&ip=!10.0.0.1']) {
    const { items } = await page(query)
    assert.deepEqual(items.map(({ to, port, flows, pods }) => [to.ip, port, flows, pods]).sort(), [
      ['counted', null, 1, 0],
      ['pending', null, 1, 0],
    ])
  }
})

test('GET /flows/edges 503: until the flows of an older release are counted', async () => {
  const old = await startApp({ ...TOKENS })
  await old.sql`update flow_edge_cursor set time_stamp = '-infinity', uuid = '', as_of = null`
  const answer = await old.get('/flows/edges', { headers })
  assert.equal(answer.status, 503)
  assert.equal(answer.headers.get('retry-after'), '30')
  assert.match(answer.text, /being counted for the first time/)
  // A transaction that another database begins meanwhile holds the first pass up.
  await becomes(async () => {
    await run(old)
    return (await old.get('/flows/edges', { headers })).status
  }, 200)
})

const REFUSED: [query: string, message: RegExp][] = [
  ['group=pod', /group: .*workload/],
  ['order=newest', /order: .*lastNewAt/],
  ['cidr=33', /cidr: expected 0 to 32/],
  ['cidr=-1', /cidr: expected 0 to 32/],
  ['limit=0', /limit: expected 1 to 20000/],
  ['count_pods=0', /count_pods: /],
  ['limit=20001', /limit: expected 1 to 20000/],
  ['since=yesterday', /since: expected a time/],
  ['since=1h&until=2h', /until: expected no time before since/],
  ['name=x', /name: not known here: the parameters of this route are namespace/],
  ['port=70000', /port\[0\]: expected a port/],
  ['after=abc', /after: expected the nextAfter/],
]
for (const [query, message] of REFUSED)
  test(`GET /flows/edges 400: ${query}`, async () => {
    const answer = await get(`?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, message)
  })

test('GET /flows/edges 400: a cursor of another list, or one that is forged', async () => {
  const { nextAfter } = await page('?limit=1')
  const keys = JSON.parse(Buffer.from(nextAfter!, 'base64url').toString())
  const forged = (change: (keys: unknown[]) => void) => {
    const copy = [...keys]
    change(copy)
    return Buffer.from(JSON.stringify(copy)).toString('base64url')
  }
  for (const query of [`group=namespace&after=${nextAfter}`, `order=flows&after=${nextAfter}`])
    assert.match((await get(`?${query}`)).text, /after: the cursor is of another group or order/)
  const ofFlows = (await page('?limit=1&node=node-1')).nextAfter
  for (const query of [`ip=8.8.8.8&after=${nextAfter}`, `verdict=ALLOW&after=${ofFlows}`]) {
    const answer = await get(`?${query}`)
    assert.deepEqual(
      [answer.status, answer.text],
      [400, 'Query deserialize error: after: the cursor is of another filter'],
    )
  }
  for (const change of [
    (all: unknown[]) => all.splice(2, 1, 'infinity'),
    (all: unknown[]) => all.splice(3, 1, '-infinity'),
    (all: unknown[]) => all.splice(4, 1, "'; drop table traffic"),
    (all: unknown[]) => all.splice(5, 1, '9:1:'),
    (all: unknown[]) => all.splice(6, 1, ''),
    (all: unknown[]) => all.splice(7, 1, 2),
    (all: unknown[]) => all.splice(8, 1, '9'.repeat(30)),
    (all: unknown[]) => all.splice(8, 1, '5'),
    (all: unknown[]) => all.splice(8, 1, '2026-99-99 00:00:00'),
    (all: unknown[]) => all.splice(9, 1, '9'.repeat(19)),
    (all: unknown[]) => all.push('more'),
  ])
    assert.equal((await get(`?after=${forged(change)}`)).status, 400, String(change))
})

test('GET /flows/edges 400: more flows than a query counts itself', { skip: onlyFull }, async () => {
  await app.sql`insert into traffic (uuid, time_stamp)
                select 'many-' || n, '2020-01-01' from generate_series(1, 1000001) n`
  const answer = await get('?pod=shop/web-1')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /since: a filter by pod, label, node or ip counts at most 1000000 flows/)
  assert.equal((await get('?pod=shop/web-1&since=2d')).status, 200)
  await app.sql`delete from traffic where time_stamp = '2020-01-01'`
})

test('flows to count are those of the range, and of the pods that may match where they are known', async () => {
  const of = (since: string, until: string, pods: string[] | null, most: number) =>
    isTooMany(app.db.read, { since: T(since), until: T(until) }, pods, most)
  assert.deepEqual(
    [await of('10:00:00', '10:00:08', null, 7), await of('10:00:00', '10:00:08', null, 8)],
    [true, false],
  )
  assert.equal(await of('10:00:00', '10:00:07', null, 7), false)
  const pods = ['web-1', 'db-0', 'nobody']
  assert.deepEqual(
    [await of('10:00:00', '10:00:08', pods, 5), await of('10:00:00', '10:00:08', pods, 6)],
    [true, false],
  )
  assert.equal(await of('10:00:00', '10:00:08', [], 0), false)
})

test('a flow that is stored between the look-up of pods and the count is in neither, whatever pod reported it', async () => {
  const range = { since: T('10:00:00'), until: T('10:00:08') }
  const filter = [{ subject: 'ip', side: 'either', wanted: [{ address: '8.8.8.9' }], excluded: [] }] as const
  const reporters = await readReporters(app.db.read, { filter, order: 'oldest', ...range }, null)
  assert.deepEqual(reporters?.pods, ['web-1'])
  await app.sql`
    insert into traffic (uuid, pod_name, pod_namespace, traffic_type, traffic_in_out_ip, traffic_in_out_port, time_stamp)
    values ('late', 'web-1', 'shop', 'EGRESS', '8.8.8.9', '444', ${T('10:00:05')}::text::timestamp)`
  const shape = { group: 'workload', cidr: null, countPods: true, order: 'lastNewAt', after: null } as const
  const query = { filter, ...range, ...shape, limit: 9, retentionDays: 0 }
  const found = await readEdges(app.db.read, { ...query, reporters })
  assert.deepEqual([found.passed, found.asOf], [1, reporters.asOf])
  assert.equal((await readEdges(app.db.read, { ...query, reporters: null })).passed, 2)
  await app.sql`delete from traffic where uuid = 'late'`
})

test('GET /flows/edges 401: without a token', async () => {
  assertUnauthorized(await app.get('/flows/edges'))
})

test('GET /flows/edges 503: the database cancels the statement, and the failure is not kept', async () => {
  await whileRefused(app.sql, 'flow_edge', async () => assertDatabaseBusy(await get('?limit=7')))
  assert.equal((await get('?limit=7')).status, 200)
})
