import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from './support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
const small = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0', BROKER_READ_MEMORY_BUDGET_MB: '1' })
const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }

type Item = Record<string, unknown>

const get = (query = '', accept = '*/*') => app.get(`/flows${query}`, { headers: { ...headers, accept } })
async function page(query = '') {
  const answer = await get(query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Item[]; nextAfter: string | null; unstamped: number } & Record<string, string | null>
}
const uuids = async (query: string) => (await page(query)).items.map(({ uuid }) => uuid).sort()

// ---- A cluster, as its agents post it -------------------------------------------------------------------------------

const T = (time: string) => `2026-03-01T${time}`
const sends = async (path: string, body: unknown) => {
  const answer = await app.post(path, body, { headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` } })
  assert.equal(answer.status, 200, answer.text)
}

const pod = (pod_namespace: string, pod_name: string, pod_ip: string, more: Item = {}, labels: Item = {}) => ({
  ...{ pod_namespace, pod_name, pod_ip, node_name: 'node-1', is_dead: false, time_stamp: T('09:00:00') },
  started_at: T('08:00:00'),
  pod_obj: {
    metadata: {
      uid: `uid-${pod_name}`,
      labels,
      ownerReferences: 'workload_kind' in more ? [{ kind: 'ReplicaSet' }] : [],
    },
  },
  ...more,
})
for (const one of [
  pod(
    'shop',
    'web-1',
    '10.0.0.1',
    { workload_kind: 'Deployment', workload_name: 'web' },
    { app: 'web', tier: 'front' },
  ),
  pod(
    'shop',
    'db-0',
    '10.0.0.2',
    { workload_kind: 'StatefulSet', workload_name: 'db', node_name: 'node-2' },
    { app: 'db' },
  ),
  pod('shop-2', 'web-1-b', '10.0.1.1', { workload_kind: 'Deployment', workload_name: 'web', node_name: 'node-2' }),
  pod('tools', 'debug', '10.0.2.1', {}, { app: 'debug' }),
  pod('kube-system', 'proxy-1', '192.168.0.1', { host_network: true, node_name: 'node-3' }),
  pod('shop', 'six', 'fd00::1', { workload_kind: 'Deployment', workload_name: 'six' }),
])
  await sends('/pod/spec', one)
await sends('/svc/spec', {
  ...{ svc_ip: '10.96.0.5', svc_name: 'db', svc_namespace: 'shop', time_stamp: T('09:00:00') },
})

let seconds = 0
const flow = (uuid: string, pod_namespace: string | null, pod_name: string, pod_ip: string, more: Item) => ({
  ...{ uuid, pod_name, pod_namespace, pod_ip, pod_port: '0', ip_protocol: 'TCP', traffic_type: 'EGRESS' },
  ...{ decision: 'ALLOW', time_stamp: T(`10:00:${String(seconds++).padStart(2, '0')}`) },
  ...more,
})
const to = (traffic_in_out_ip: string | null, traffic_in_out_port: string, more: Item = {}) => ({
  ...{ traffic_in_out_ip, traffic_in_out_port },
  ...more,
})
const from = (traffic_in_out_ip: string, pod_port: string) => ({
  ...{ traffic_type: 'INGRESS', traffic_in_out_ip, traffic_in_out_port: '0', pod_port },
})
await sends('/pod/traffic/batch', [
  flow('web-svc', 'shop', 'web-1', '10.0.0.1', to('10.96.0.5', '5432')),
  flow('web-db', 'shop', 'web-1', '10.0.0.1', to('10.0.0.2', '5432')),
  flow('db-web', 'shop', 'db-0', '10.0.0.2', from('10.0.0.1', '5432')),
  flow('web-out', 'shop', 'web-1', '10.0.0.1', to('140.82.112.3', '443')),
  flow('web2-out', 'shop-2', 'web-1-b', '10.0.1.1', to('140.82.112.4', '8443', { decision: 'DROP' })),
  flow('debug-dns', 'tools', 'debug', '10.0.2.1', to('10.200.0.10', '53', { ip_protocol: 'UDP' })),
  flow('db-node', 'shop', 'db-0', '10.0.0.2', from('192.168.0.1', '5432')),
  flow('six-out', 'shop', 'six', 'fd00::1', to('2606:4700::6810:84e5', '443')),
  flow('nobody', null, 'gone', '10.9.9.9', to(null, 'http', { ip_protocol: 'SCTP' })),
  flow('odd', 'shop', 'web-1', '10.0.0.1', to('10.0.0.2', '22', { traffic_type: 'SIDEWAYS' })),
])
const ALL = [
  ...['web-svc', 'web-db', 'db-web', 'web-out', 'web2-out', 'debug-dns', 'db-node', 'six-out', 'nobody', 'odd'],
].sort()
const except = (...some: string[]) => ALL.filter((one) => !some.includes(one))

const CASES: [query: string, expected: string[]][] = [
  ['', ALL],
  ['namespace=tools', ['debug-dns']],
  ['namespace=&label=&ip=%20&since=&until=', ALL],
  ['namespace=shop-2&namespace=tools', ['web2-out', 'debug-dns']],
  ['namespace=!shop', ['debug-dns', 'nobody', 'web2-out']],
  ['from_namespace=shop', ['web-svc', 'web-db', 'db-web', 'web-out', 'six-out']],
  ['to_namespace=shop', ['web-svc', 'web-db', 'db-web', 'db-node']],
  ['to_namespace=!shop', except('web-svc', 'web-db', 'db-web', 'db-node')],
  ['from_namespace=shop&to_namespace=!shop', ['web-out', 'six-out']],
  ['workload=shop/Deployment/web', ['web-svc', 'web-db', 'db-web', 'web-out', 'odd']],
  ['workload=shop/web', ['web-svc', 'web-db', 'db-web', 'web-out', 'odd']],
  ['workload=shop/StatefulSet/web', []],
  ['to_workload=shop/db', ['web-db', 'db-web', 'db-node']],
  ['from_workload=shop/db', []],
  ['workload=tools/Pod/debug', ['debug-dns']],
  ['workload=shop/db&workload=!shop/web', ['db-node']],
  ['pod=shop/web-1', ['web-svc', 'web-db', 'db-web', 'web-out', 'odd']],
  ['pod=shop/web*', ['web-svc', 'web-db', 'db-web', 'web-out', 'odd']],
  ['pod=shop/*', ['web-svc', 'web-db', 'db-web', 'web-out', 'db-node', 'six-out', 'odd']],
  ['to_pod=shop/db-0', ['web-db', 'db-web', 'db-node']],
  ['pod=kube-system/proxy-1', []],
  ['service=shop/db', ['web-svc']],
  ['from_service=shop/db', []],
  ['ip=10.0.0.2', ['web-db', 'db-web', 'db-node', 'odd']],
  ['ip=::ffff:10.0.0.2', ['web-db', 'db-web', 'db-node', 'odd']],
  ['to_ip=10.0.0.0/24', ['web-db', 'db-web', 'db-node']],
  ['ip=0.0.0.0/0', except('six-out')],
  ['ip=::/0', ['six-out']],
  ['to_ip=2606:4700::/32', ['six-out']],
  ['ip=!10.0.0.0/8', ['six-out']],
  // IPv4-mapped IPv6 networks hold IPv4 addresses, wider ones only IPv6 addresses.
  ['ip=::ffff:10.0.0.2/128', ['web-db', 'db-web', 'db-node', 'odd']],
  ['to_ip=::ffff:a00:0/120', ['web-db', 'db-web', 'db-node']],
  ['ip=!::ffff:10.0.0.0/104', ['six-out']],
  ['ip=::ffff:0:0/96', except('six-out')],
  ['ip=::ffff:0:0/95', []],
  // However the bits are written.
  ['ip=fd00::/08', ['six-out']],
  ['ip=!10.0.0.0/08', ['six-out']],
  ['port=5432', ['web-svc', 'web-db', 'db-web', 'db-node']],
  ['port=8000-8999', ['web2-out']],
  ['port=0', []],
  ['port=!443&port=!5432', ['web2-out', 'debug-dns', 'nobody', 'odd']],
  ['protocol=udp', ['debug-dns']],
  ['protocol=SCTP&protocol=UDP', ['debug-dns', 'nobody']],
  ['verdict=drop', ['web2-out']],
  ['seen_by=to', ['db-web', 'db-node']],
  ['seen_by=!to', except('db-web', 'db-node')],
  ['peer=service', ['web-svc']],
  ['peer=node', ['db-node']],
  ['peer=external', ['web-out', 'web2-out', 'six-out']],
  ['peer=unresolved', ['debug-dns', 'nobody']],
  ['public=true', ['web-out', 'web2-out', 'six-out']],
  ['public=false', except('web-out', 'web2-out', 'six-out')],
  ['label=app=db', ['web-db', 'db-web', 'db-node', 'odd']],
  ['from_label=app=web', ['web-svc', 'web-db', 'db-web', 'web-out']],
  ['from_label=app=web&to_label=app=db', ['web-db', 'db-web']],
  ['label=tier=back', []],
  ['node=node-2', ['web-db', 'db-web', 'db-node', 'web2-out', 'odd']],
  ['from_node=node-3', ['db-node']],
  ['since=2026-03-01T10:00:03Z&until=2026-03-01T11:00:05%2B01:00', ['web-out', 'web2-out']],
  ['since=2026-03-01T10:00:08', ['nobody', 'odd']],
  ['until=2026-03-01T10:00:00', []],
]
for (const [query, expected] of CASES)
  test(`GET /flows 200: ${query || 'no filter'}`, async () => {
    assert.deepEqual(await uuids(`?${query}`), [...expected].sort())
  })

test('GET /flows 200: an item is the traffic row, its stamps and both sides', async () => {
  const { items } = await page('?service=shop/db')
  const [row] = (await app.get('/pod/traffic/web-1', { headers })).json.filter(({ uuid }: Item) => uuid === 'web-svc')
  assert.deepEqual(items, [
    {
      ...row,
      ...{ pod_workload_kind: 'Deployment', pod_workload_name: 'web' },
      from: {
        ...{ kind: 'pod', namespace: 'shop', name: 'web-1', workload: 'Deployment/web', ip: '10.0.0.1', port: '0' },
      },
      to: { kind: 'service', namespace: 'shop', name: 'db', workload: null, ip: '10.96.0.5', port: '5432' },
    },
  ])
  const kinds = Object.fromEntries((await page()).items.map(({ uuid, from, to }) => [uuid, [from, to]]))
  assert.deepEqual(
    Object.entries(kinds).map(([uuid, sides]) => [uuid, ...(sides as (Item | null)[]).map((side) => side?.kind)]),
    [
      ['odd', null, null],
      ['nobody', 'pod', 'unresolved'],
      ['six-out', 'pod', 'external'],
      ['db-node', 'node', 'pod'],
      ['debug-dns', 'pod', 'unresolved'],
      ['web2-out', 'pod', 'external'],
      ['web-out', 'pod', 'external'],
      ['db-web', 'pod', 'pod'],
      ['web-db', 'pod', 'pod'],
      ['web-svc', 'pod', 'service'],
    ],
  )
})

test('GET /flows 200: pages follow each other in both orders, also while flows arrive', async () => {
  for (const order of ['newest', 'oldest']) {
    const seen: unknown[] = []
    let after = ''
    for (let n = 0; ; n++) {
      const { items, nextAfter } = await page(`?order=${order}&limit=3&after=${after}`)
      assert.ok(items.length <= 3)
      seen.push(...items.map(({ uuid }) => uuid))
      if (nextAfter === null) break
      after = nextAfter
      // On either side of the place: neither page changes.
      const time = order === 'newest' ? '2027-01-01' : '2020-01-01'
      await app.sql`insert into traffic (uuid, time_stamp) values (${`${order}-late-${n}`}, ${time})`
    }
    const expected = [
      'odd',
      'nobody',
      'six-out',
      'db-node',
      'debug-dns',
      'web2-out',
      'web-out',
      'db-web',
      'web-db',
      'web-svc',
    ]
    assert.deepEqual(seen, order === 'newest' ? expected : expected.reverse())
    await app.sql`delete from traffic where uuid like '%-late-%'`
  }
})

test('GET /flows 200: a flow of a pod whose workload was not recorded is counted, unless the rest decides', async () => {
  await app.sql`insert into traffic (uuid, pod_namespace, pod_name, traffic_type, ip_protocol, time_stamp)
                values ('bare', 'shop', 'old-1', 'EGRESS', 'TCP', '2026-03-01 10:00:30')`
  const counts = async (query: string) => {
    const { items, unstamped } = await page(`?since=${T('10:00:20')}&${query}`)
    return [items.length, unstamped]
  }
  assert.deepEqual(await counts('workload=shop/web'), [0, 1])
  assert.deepEqual(await counts('workload=!shop/web'), [0, 1])
  assert.deepEqual(await counts('workload=tools/web'), [0, 0])
  assert.deepEqual(await counts('workload=shop/web&protocol=UDP'), [0, 0])
  assert.deepEqual(await counts('label=app=web'), [0, 1])
  assert.deepEqual(await counts('node=node-1'), [0, 1])
  assert.deepEqual(await counts('namespace=shop'), [1, 0])
  const lines = await get(`?since=${T('10:00:20')}&workload=shop/web`, 'application/x-ndjson')
  assert.equal(JSON.parse(lines.text).unstamped, 1)
  await app.sql`delete from traffic where uuid = 'bare'`
})

test('GET /flows 200: a port is a number of up to five digits, however it is written', async () => {
  const ports = ['7443', '07443', '007443', '7 443', '7443.0', '+7443', '']
  await app.sql`
    insert into traffic (uuid, traffic_type, pod_port, time_stamp)
    select 'port-' || p, 'INGRESS', p, ${T('10:00:30')}::text::timestamp from json_array_elements_text(${JSON.stringify(ports)}::text::json) p`
  for (const asked of ['port=7443', 'port=7443-7443', 'port=7440-7449', 'port=7443&port=1-2', 'port=!80&port=7443']) {
    const { items } = await page(`?since=${T('10:00:30')}&${asked}`)
    assert.deepEqual(items.map(({ uuid }) => uuid).sort(), ['port-07443', 'port-7443'], asked)
  }
  const others = await page(`?since=${T('10:00:30')}&port=!7443`)
  assert.equal(others.items.length, ports.length - 2)
  await app.sql`delete from traffic where uuid like 'port-%'`
})

test('GET /flows 200: the answer says for which part of the range flows are kept', async () => {
  const whole = await page()
  assert.equal(whole.observedSince, T('10:00:00'))
  const [now] = await app.sql`select to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI') as now`
  assert.ok(whole.observedUntil! >= now!.now)
  const before = await page('?since=2020-01-01T00:00:00&until=2021-01-01T00:00:00')
  assert.deepEqual(
    [before.items, before.observedSince, before.observedUntil],
    [[], T('10:00:00'), '2021-01-01T00:00:00'],
  )
  const late = await page(`?since=${T('10:00:05')}`)
  assert.equal(late.observedSince, T('10:00:05'))
  for (const query of ['limit=1', 'since=15m', 'since=2020-01-01T00:00:00']) {
    const empty = await small.get(`/flows?${query}`, { headers })
    assert.equal(empty.json.observedSince, null, `nothing was ever stored: ${query}`)
  }
  // Flows of pods that are gone are kept for the retention days only.
  await small.sql`insert into traffic (uuid, time_stamp) values ('old', now() at time zone 'utc' - interval '100 days')`
  const kept = (await small.get('/flows?limit=1', { headers })).json
  assert.equal(kept.items.length, 1)
  const days = (Date.parse(`${kept.observedUntil}Z`) - Date.parse(`${kept.observedSince}Z`)) / 86_400_000
  assert.equal(days, 14)
})

test('GET /flows 200: a stream has flows that were restored from a server with more transactions', async () => {
  await app.sql`insert into traffic (uuid, pod_namespace, time_stamp, tx)
                values ('restored', 'restored', ${T('10:00:00')}::text::timestamp, '999999999999'::xid8)`
  const lines = await get('?namespace=restored&fields=uuid', 'application/x-ndjson')
  assert.deepEqual(JSON.parse(lines.text.split('\n')[0]!), { uuid: 'restored' })
  await app.sql`delete from traffic where uuid = 'restored'`
})

test('GET /flows 200: `since` and `until` may be distances from now', async () => {
  await app.sql`insert into traffic (uuid, time_stamp)
                select 'ago-' || n, now() at time zone 'utc' - make_interval(mins => n) from unnest(array[5, 50, 500]) n`
  assert.deepEqual(await uuids('?since=15m'), ['ago-5'])
  assert.deepEqual(await uuids('?since=1h'), ['ago-5', 'ago-50'])
  assert.deepEqual(await uuids('?since=2w&until=600s'), ['ago-50', 'ago-500'])
  await app.sql`delete from traffic where uuid like 'ago-%'`
})

test('GET /flows 200: `fields` chooses the fields, in their usual order', async () => {
  const { items } = await page('?fields=to,uuid&namespace=tools')
  assert.deepEqual(Object.keys(items[0]!), ['uuid', 'to'])
  const table = await get('?fields=to,uuid&namespace=tools', 'text/csv')
  assert.equal(
    table.text,
    'uuid,to_kind,to_namespace,to_name,to_workload,to_ip,to_port\r\ndebug-dns,unresolved,,,,10.200.0.10,53\r\n',
  )
})

test('GET /flows 200: lines of JSON have the items of the pages, and say how they end', async () => {
  const answer = await get('', 'application/x-ndjson')
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson')
  const lines = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const { items, observedSince } = await page()
  assert.deepEqual(lines.slice(0, -1), items)
  const { observedUntil, resume, ...end } = lines.at(-1)
  assert.equal(typeof resume, 'string')
  assert.deepEqual(end, { end: true, count: 10, nextAfter: null, observedSince, unstamped: 0 })
  const cut = (await get('?limit=2', 'application/x-ndjson')).text.trimEnd().split('\n')
  assert.equal(cut.length, 3)
  const { count, nextAfter, resume: none } = JSON.parse(cut[2]!)
  assert.deepEqual([count, none], [2, null])
  assert.equal((await page(`?after=${nextAfter}`)).items[0]!.uuid, 'six-out')
  const empty = await get('?namespace=none', 'application/x-ndjson')
  assert.equal(JSON.parse(empty.text).count, 0)
})

test('GET /flows 200: a table has a head, quotes what needs it, and no formula', async () => {
  await app.sql`insert into traffic (uuid, pod_name, pod_namespace, pod_port, decision, drop_cause, time_stamp)
                values ('=1+1', '@a,"b"', ${'line\nbreak'}, '-1', '+x', ${'\x1f\x01'}, '2026-03-02 00:00:00.5')`
  const fields = 'uuid,pod_name,pod_namespace,pod_port,decision,time_stamp,drop_cause,syn_retries'
  const table = await get(`?since=2026-03-02T00:00:00&fields=${fields}`, 'text/csv')
  assert.match(table.headers.get('content-type')!, /^text\/csv/)
  assert.equal(table.headers.get('x-kguardian-observed-since'), '2026-03-02T00:00:00')
  assert.equal(
    table.text,
    'uuid,pod_name,pod_namespace,pod_port,decision,time_stamp,drop_cause,syn_retries\r\n' +
      `"'=1+1","'@a,""b""","line\nbreak","'-1","'+x",2026-03-02T00:00:00.500,\x1f\x01,\r\n`,
  )
  const line = (await get(`?since=2026-03-02T00:00:00&fields=drop_cause`, 'application/x-ndjson')).text.split('\n')[0]!
  assert.equal(JSON.parse(line).drop_cause, '\x1f\x01')
  await app.sql`delete from traffic where uuid = '=1+1'`
})

test('GET /flows 200: `Accept` chooses by weight, and JSON is the default', async () => {
  for (const [accept, type] of [
    ['', 'application/json'],
    ['*/*', 'application/json'],
    ['text/html', 'application/json'],
    ['text/csv;q=0.5, application/x-ndjson', 'application/x-ndjson'],
    ['Text/CSV', 'text/csv; charset=utf-8; header=present'],
  ])
    assert.equal((await get('?limit=1', accept)).headers.get('content-type'), type, accept)
})

test('GET /flows 200: all flows of a long list, whatever the form, also where few of them pass', async () => {
  await app.sql`insert into traffic (uuid, pod_namespace, time_stamp)
                select 'many-' || n, case when n % 1000 = 0 then 'rare' else 'often' end,
                       timestamp '2026-02-01' + n * interval '1 second' from generate_series(1, 72000) n`
  const range = 'since=2026-02-01T00:00:00&until=2026-02-20T00:00:00'
  const lines = (await get(`?${range}&order=oldest&fields=uuid`, 'application/x-ndjson')).text.trimEnd().split('\n')
  assert.equal(lines.length, 72_001)
  assert.deepEqual(
    lines.slice(0, -1).filter((line, i) => line !== `{"uuid":"many-${i + 1}"}`),
    [],
  )
  const table = (await get(`?${range}&order=oldest&fields=uuid`, 'text/csv')).text.trimEnd().split('\r\n')
  assert.deepEqual([table.length, table.at(-1)], [72_001, 'many-72000'])
  const { items, nextAfter } = await page(`?${range}&namespace=rare&limit=100`)
  assert.deepEqual([items.length, nextAfter, items[0]!.uuid], [72, null, 'many-72000'])
  await app.sql`delete from traffic where uuid like 'many-%'`
})

for (const [query, text] of [
  ['x=1', /^Query deserialize error: x: not known here: the parameters of this route are namespace, from_namespace, /],
  ['namespace=a&namespace=!', /namespace\[1\]: expected a name/],
  ['workload=web', /workload\[0\]: expected namespace\/name or namespace\/Kind\/name/],
  ['workload=a/b/c/d', /workload\[0\]: expected/],
  ['workload=a//c', /workload\[0\]: expected/],
  ['pod=web', /pod\[0\]: expected namespace\/name or namespace\/prefix\*/],
  ['service=a/b/c', /service\[0\]: expected namespace\/name/],
  ['ip=10.0.0', /ip\[0\]: expected an address or a CIDR/],
  ['ip=10.0.0.0/33', /ip\[0\]: expected/],
  ['ip=::/129', /ip\[0\]: expected/],
  ['ip=fe80::1%25eth0', /ip\[0\]: expected/],
  ['label=app', /label\[0\]: expected key=value/],
  ['label==x', /label\[0\]: expected key=value/],
  ['port=65536', /port\[0\]: expected a port of 0 to 65535/],
  ['port=9-8', /port\[0\]: expected/],
  ['port=http', /port\[0\]: expected/],
  ['protocol=GRE', /protocol\[0\]: expected TCP, UDP, SCTP/],
  ['verdict=deny', /verdict\[0\]: expected ALLOW, DROP/],
  ['seen_by=both', /seen_by\[0\]: expected from, to/],
  ['peer=vm', /peer\[0\]: expected pod, service, node, external, unresolved/],
  ['public=yes', /public\[0\]: expected true, false/],
  ['since=yesterday', /since: expected a time such as/],
  ['since=2026-02-30T00:00:00', /since: expected a time/],
  ['since=1h&until=2h', /until: expected no time before since/],
  ['order=random', /order: /],
  ['limit=0', /limit: expected 1 to 20000/],
  ['limit=20001', /limit: expected 1 to 20000/],
  ['limit=1&limit=2', /limit: /],
  ['after=abc', /after: expected the nextAfter/],
  ['fields=uuid,nothing', /fields: an unknown field: the fields are uuid, pod_name/],
  ['fields=', /fields: an unknown field/],
  [`namespace=a%00`, /namespace\[0\]: expected/],
  [`namespace=${'a'.repeat(1_025)}`, /namespace\[0\]: expected/],
  [Array.from({ length: 65 }, (_, n) => `port=${n}`).join('&'), /port: more than 64 values/],
] as const)
  test(`GET /flows 400: ${query.slice(0, 60)}`, async () => {
    const answer = await get(`?${query}`)
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.text, text)
  })

test('GET /flows 400: a cursor of the other order', async () => {
  const { nextAfter } = await page('?limit=1')
  const answer = await get(`?order=oldest&after=${nextAfter}`)
  assert.deepEqual(
    [answer.status, answer.text],
    [400, 'Query deserialize error: after: the cursor is of the other order'],
  )
})

test('GET /flows 401: without a token', async () => {
  assertUnauthorized(await app.get('/flows'))
})

test('GET /flows 503: the read budget is spent, or the database cancels the statement', async () => {
  const path = '/flows?limit=20000'
  const answers = await Promise.all([small.get(path, { headers }), small.get(path, { headers })])
  assertShed(answers.find(({ status }) => status !== 200)!, 1_024, 1_024)
  await whileRefused(app.sql, 'traffic', async () => assertDatabaseBusy(await get()))
})
