import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPackages } from '../jobs/supply-chain/steps.ts'
import { startApp, TOKENS } from './support/app.ts'
import { container, newDigest, replica } from './support/images.ts'
import { podPost } from './support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'
import { component, finding, storeFindings, storeSbom } from './support/supply-chain.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const CHARGE_KIB = 1_024
const token = TOKENS.BROKER_TOKEN_READ

type Hit = Record<string, unknown> & { type: string; running: boolean | null; match: string; href: string }

async function search(q: string, limit?: number) {
  const answer = await app.get(
    `/search?${new URLSearchParams({ q, ...(limit === undefined ? {} : { limit: `${limit}` }) })}`,
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { query: string; hits: Hit[]; truncated: string[]; notCovered: number; notRead: number }
}
const hits = async (q: string, type?: string) =>
  (await search(q)).hits.filter((hit) => type === undefined || hit.type === type)
const shorts = async (q: string, type: string, key: string) =>
  (await hits(q, type)).map((hit) => [hit[key], hit.running, hit.match])

/** An image that runs in a Deployment of a namespace. */
async function runImage(fields: Record<string, unknown> = {}, post: Record<string, unknown> = {}): Promise<string> {
  const digest = newDigest()
  const answer = await app.post('/pod/spec', replica('shop', [container('app', digest, fields)], post))
  assert.equal(answer.status, 200)
  return digest
}
const log4j = { version: '2.14.1', purl: 'pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1', type: 'jar' }

test('GET /search 200: a package by name, by artifact, by its beginning and in any case, before and after the job', async () => {
  const digest = await runImage()
  await storeSbom(app, digest, 'operator-scanner', [
    component('org.apache.logging.log4j:log4j-core', log4j),
    component('Log4Net'),
  ])
  const hit = (name: string, match: string) => ({
    ...{ type: 'package', name, purl: null, running: true, match, href: `/components?name=${name}` },
  })
  for (const isRead of [false, true]) {
    if (isRead) await readPackages({ ...app.deps, signal: new AbortController().signal } as never)
    assert.deepEqual(await hits('LOG4J', 'package'), [hit('log4j-core', 'prefix')])
    assert.deepEqual(await hits('log4j-core', 'package'), [hit('log4j-core', 'exact')])
    assert.deepEqual(await hits(' log4 '), [hit('log4j-core', 'prefix'), hit('log4net', 'prefix')])
    assert.deepEqual(await hits('log4j_core'), [], '_ is no pattern')
    assert.deepEqual(await hits('log4%'), [], '% is no pattern')
  }
})

test('GET /search 200: a package URL with version and qualifiers, without, and its beginning', async () => {
  const digest = await runImage()
  const purl = 'pkg:maven/org.purls/purl-core'
  await storeSbom(app, digest, 'registry', [
    component('purl-core', { version: '2.14.1', purl: `${purl}@2.14.1?type=jar` }),
  ])
  const found = async (q: string) => (await hits(q)).map((hit) => [hit.purl, hit.match, hit.href])
  const href = (text: string) => `/components?purl=${encodeURIComponent(text)}`
  const exact = [`${purl}@2.14.1`, 'exact', href(`${purl}@2.14.1`)]
  assert.deepEqual(await found(`${purl}@2.14.1?type=jar`), [exact, [purl, 'part', href(purl)]])
  assert.deepEqual(await found(`PKG:maven/ORG.purls/purl-core@2.14.1`), [exact, [purl, 'part', href(purl)]])
  assert.deepEqual(await found(`${purl}@2.15.0`), [[purl, 'part', href(purl)]], 'another version of it')
  assert.deepEqual(await found(purl), [[purl, 'exact', href(purl)]])
  assert.deepEqual(await found('pkg:maven/org.purls/'), [[purl, 'prefix', href(purl)]])
  for (const [, , path] of await found(`${purl}@2.14.1`))
    assert.equal((await app.get(path as string)).json.items.length, 1)
})

test('GET /search 200: a CVE in any case, or a GHSA id that stands for it', async () => {
  const digest = await runImage()
  await storeFindings(app, digest, 'operator-scanner', [
    finding('CVE-2021-44228', { aliases: ['GHSA-jfh8-c2jp-5v3q'] }),
  ])
  const gone = newDigest()
  await storeFindings(app, gone, 'operator-scanner', [finding('CVE-2021-1')])
  const hit = (match: string) => ({
    ...{ type: 'vulnerability', id: 'CVE-2021-44228', aliases: ['GHSA-jfh8-c2jp-5v3q'], running: true, match },
    href: '/vulnerabilities/CVE-2021-44228/exposure',
  })
  assert.deepEqual(await hits('cve-2021-44228'), [hit('exact')])
  assert.deepEqual(await hits('ghsa-JFH8-c2jp-5v3q'), [hit('part')])
  assert.equal((await app.get(hit('exact').href)).status, 200)
  assert.deepEqual(await hits('CVE-2021-1'), [], 'no image of the inventory has it')
})

test('GET /search 200: a digest, whole, short or behind a reference, also of an index', async () => {
  const digest = await runImage({ repository: 'registry:5000/team/short', tag: 'v1' })
  const digits = digest.slice('sha256:'.length)
  const hit = (match: string) => ({
    ...{ type: 'image', digest, repository: 'registry:5000/team/short', tags: ['v1'], indexDigest: null },
    ...{ inInventory: true, running: true, match, href: `/images/${encodeURIComponent(digest)}` },
  })
  for (const q of [
    digest,
    digits,
    digest.toUpperCase(),
    `registry:5000/team/short:v1@${digest}`,
    `docker-pullable://registry:5000/team/short@${digest}`,
  ])
    assert.deepEqual(await hits(q, 'image'), [hit('exact')], q)
  assert.deepEqual(await hits(digits.slice(0, 12), 'image'), [hit('prefix')])
  assert.deepEqual(await hits(digits.slice(0, 5), 'image'), [], 'fewer than six digits are no digest')

  const [index, platform] = [newDigest(), newDigest()]
  await storeFindings(app, platform, 'operator-scanner', [], { index_digest: index })
  assert.deepEqual(await hits(index), [
    {
      ...{ type: 'image', digest: platform, repository: null, tags: [], indexDigest: index, inInventory: false },
      ...{ running: null, match: 'exact', href: `/images/${encodeURIComponent(platform)}/vulnerabilities` },
    },
  ])
})

test('GET /search 200: a repository with or without registry, its end, and an image by its tag', async () => {
  const digest = await runImage({ repository: 'docker.io/library/nginx-x', tag: 'V1' })
  const team = await runImage({ repository: 'registry:5000/sales/till', tag: 'v2' })
  for (const q of [
    'docker.io/library/nginx-x',
    'nginx-x',
    'library/nginx-x',
    'index.docker.io/library/nginx-x',
    'docker.io/nginx-x',
  ])
    assert.deepEqual(await shorts(q, 'repository', 'repository'), [['docker.io/library/nginx-x', true, 'exact']], q)
  assert.deepEqual(await shorts('sales/till', 'repository', 'repository'), [['registry:5000/sales/till', true, 'part']])
  assert.deepEqual(await shorts('ales/till', 'repository', 'repository'), [], 'a segment is compared whole')
  assert.deepEqual(await shorts('nginx-x:V1', 'image', 'digest'), [[digest, true, 'exact']])
  assert.deepEqual(await shorts('registry:5000/sales/till:v2', 'image', 'digest'), [[team, true, 'exact']])
  assert.deepEqual(await shorts('sales/till:v1', 'image', 'digest'), [])
  const [hit] = await hits('sales/till')
  assert.equal((await app.get(hit!.href)).json.items[0].digest, team)
})

test('GET /search 200: workloads, pods, services, namespaces and nodes by name, as kubectl writes them', async () => {
  await runImage({}, { pod_name: 'names-7f9-x', workload_name: 'names', pod_ip: '10.7.0.1', node_name: 'names-node' })
  await app.post('/svc/spec', {
    ...{ svc_ip: '10.96.7.7', svc_name: 'names', svc_namespace: 'shop', service_spec: null },
    time_stamp: new Date().toISOString().slice(0, 19),
  })
  const all = (await hits('names')).map(({ type, match }) => `${type} ${match}`)
  assert.deepEqual(all, ['workload exact', 'pod prefix', 'node prefix', 'service exact'])
  const workload = {
    type: 'workload',
    namespace: 'shop',
    kind: 'Deployment',
    name: 'names',
    running: true,
    match: 'exact',
  }
  const href = '/workloads/shop/Deployment/names/containers'
  for (const q of [
    'shop/names',
    'deployment/names',
    'deployments.apps/names',
    'shop/Deployment/names',
    'shop/deploy/names',
    'deploy/NAMES',
  ])
    assert.deepEqual((await hits(q, 'workload'))[0], { ...workload, href }, q)
  assert.equal((await app.get(href)).status, 200)
  assert.deepEqual(await hits('statefulset/names', 'workload'), [])
  assert.deepEqual(await hits('other/names'), [])
  const [pod] = await hits('pod/names-7f9-x')
  assert.deepEqual(pod, {
    ...{ type: 'pod', namespace: 'shop', name: 'names-7f9-x', node: 'names-node', address: '10.7.0.1' },
    ...{
      workloadKind: 'Deployment',
      workloadName: 'names',
      running: true,
      match: 'exact',
      href: '/pod/name/names-7f9-x',
    },
  })
  for (const q of ['svc/names', 'shop/svc/names', 'names.shop.svc.cluster.local'])
    assert.deepEqual(await hits(q, 'service'), [
      {
        ...{ type: 'service', namespace: 'shop', name: 'names', address: '10.96.7.7', running: null, match: 'exact' },
        href: '/svc/ip/10.96.7.7',
      },
    ])
  assert.deepEqual(await hits('ns/shop'), [
    { type: 'namespace', namespace: 'shop', running: true, match: 'exact', href: '/workloads?namespace=shop' },
  ])
  assert.deepEqual(await hits('no/names-node'), [
    { type: 'node', name: 'names-node', running: true, match: 'exact', href: '/pod/list/names-node' },
  ])
  await app.post('/pod/mark_dead', { pod_name: 'names-7f9-x' })
  assert.deepEqual(await shorts('names-7f9-x', 'pod', 'name'), [['names-7f9-x', false, 'exact']])
})

test('GET /search 200: a live pod makes its workload run, also where it is its own', async () => {
  const waiting = { state: 'waiting', state_reason: 'ImagePullBackOff' }
  for (const [pod_name, fields] of [
    ['alone', { workload_kind: null, workload_name: null }],
    ['owned-1', { workload_name: 'owned' }],
  ] as const)
    await runImage(waiting, { pod_name, pod_ip: '10.7.0.9', ...fields })
  assert.deepEqual(await shorts('shop/pod/alone', 'workload', 'kind'), [['Pod', true, 'exact']])
  assert.deepEqual(await shorts('shop/owned', 'workload', 'kind'), [['Deployment', true, 'exact']])
  await app.post('/pod/mark_dead', { pod_name: 'alone' })
  assert.deepEqual(await shorts('shop/pod/alone', 'workload', 'kind'), [['Pod', false, 'exact']])
})

test('GET /search 200: an address finds who holds it now, else the workloads whose flows had it as their peer', async () => {
  await app.post(
    '/pod/spec',
    podPost({ pod_name: 'host-1', pod_namespace: 'shop', pod_ip: '10.8.0.1', host_network: true, node_name: 'node-8' }),
  )
  await app.post('/pod/spec', podPost({ pod_name: 'six', pod_namespace: 'shop', pod_ip: 'fd00::8' }))
  const found = async (q: string) => (await hits(q)).map(({ type, name, address }) => [type, name ?? address])
  assert.deepEqual(await found('10.8.0.1'), [
    ['pod', 'host-1'],
    ['node', 'node-8'],
  ])
  assert.deepEqual(await found('10.8.0.1:8080'), [
    ['pod', 'host-1'],
    ['node', 'node-8'],
  ])
  assert.deepEqual(await found('FD00:0:0::0008'), [['pod', 'six']])
  assert.deepEqual(await found('[fd00::8]:443'), [['pod', 'six']])
  assert.deepEqual(await found('198.51.100.9'), [])
  await app.sql`
    insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, traffic_in_out_ip, is_public,
                           port, ip_protocol, decision, flows, pods, first_seen_at, last_new_at, counted_at)
    select gen_random_uuid(), 'EGRESS', 'shop', 'Deployment', 'till-' || n, '198.51.100.9', true, '443', 'TCP', 'ALLOW', n, 1,
           '2026-01-01', '2026-01-02', '2026-01-02'
    from generate_series(1, 11) n`
  const [hit] = await hits('198.51.100.9')
  const { peers, ...rest } = hit as Hit & { peers: unknown[] }
  assert.deepEqual(rest, {
    ...{ type: 'address', address: '198.51.100.9', public: true, lastNewAt: '2026-01-02T00:00:00', peerCount: 11 },
    ...{ running: null, match: 'exact', href: '/flows?ip=198.51.100.9' },
  })
  assert.equal(peers.length, 10)
  assert.deepEqual(peers[0], { namespace: 'shop', kind: 'Deployment', name: 'till-11', flows: 11 })
  assert.equal((await app.get(rest.href)).status, 200)
})

test('GET /search 200: those that run come first, then the closest; each type is cut at the limit', async () => {
  for (const [name, isDead] of [
    ['cut-b', true],
    ['cut', true],
    ['cut-d', false],
    ['cut-c', false],
  ] as const) {
    await app.post('/pod/spec', podPost({ pod_name: name, pod_namespace: 'cuts' }))
    if (isDead) await app.post('/pod/mark_dead', { pod_name: name })
  }
  const found = await search('cut', 3)
  const pods = found.hits.filter(({ type }) => type === 'pod')
  assert.deepEqual(
    pods.map(({ name, running }) => [name, running]),
    [
      ['cut-c', true],
      ['cut-d', true],
      ['cut', false],
    ],
  )
  assert.deepEqual(found.truncated, ['pod'])
  assert.deepEqual((await search('cut', 4)).truncated, [])
})

test('GET /search 200: running images without report and SBOM are counted, and so are payloads that nobody looked at', async () => {
  const [{ before }] = (await app.sql`select not_covered(3600)::int as before`) as unknown as [{ before: number }]
  const digest = await runImage()
  assert.equal((await search('zz')).notCovered, before + 1)
  await storeFindings(app, digest, 'registry', [])
  assert.deepEqual([(await search('zz')).notCovered, (await search('zz')).notRead], [before, 0])
  await readPackages({ ...app.deps, signal: new AbortController().signal } as never)
  await app.sql`
    insert into image_report (digest, source, kind, digest_kind, platform_manifests, manifest_digests, scanned_at, os_eosl,
                              observed_in, content_hash, item_count, sbom_sources, post, received_at)
    select 'sha256:f' || lpad(to_hex(n), 63, '0'), 'registry', 'sbom', 'unknown', '{}', '{}', now(), false, '[]', 'x', 0, '{}',
           'many-' || n, now()
    from generate_series(1, 503) n`
  assert.equal((await search('zz')).notRead, 3)
  await readPackages({ ...app.deps, signal: new AbortController().signal } as never)
  assert.equal((await search('zz')).notRead, 0)
  await app.sql`delete from image_report where post like 'many-%'`
})

test('GET /search 200: texts that could break something are plain text', async () => {
  const texts = [
    '%',
    '_',
    '\\',
    "'",
    '"',
    '..',
    '/',
    '//',
    ':',
    '@',
    'a@b@c',
    'pkg:',
    'pkg:/',
    'pkg:@',
    'sha256:',
    '[',
    '[::1',
    '{}',
    '\u{10ffff}',
    '😀',
  ]
  for (const q of [
    ...texts,
    'a'.repeat(2_048),
    '/'.repeat(2_048),
    '%'.repeat(2_000),
    '@'.repeat(2_000),
    'é'.repeat(1_024),
  ])
    assert.ok(Array.isArray((await search(q)).hits), q)
})

test('GET /search 400: a missing, blank, long or broken text, and an unknown parameter', async () => {
  const refused = async (query: string, says: RegExp) => {
    const answer = await app.get(`/search?${query}`)
    assert.equal(answer.status, 400, query)
    assert.match(answer.text, says)
  }
  await refused('', /q: /)
  for (const blank of ['', '+', '%09%20']) await refused(`q=${blank}`, /q: expected a text that is not blank/)
  await refused('q=a%00b', /q: U\+0000 is not allowed/)
  await refused(`q=${'a'.repeat(2_049)}`, /q: expected at most 2048 bytes/)
  await refused(`q=${'x'.repeat(10_000)}`, /q: expected at most 2048 bytes/)
  await refused('q=a&limit=many', /limit: /)
  await refused('q=a&query=b', /query/)
})

test('GET /search 401: without a token', async () => {
  assertUnauthorized(await guarded.get('/search?q=web'))
  assert.equal((await guarded.get('/search?q=web', { token })).status, 200)
})

test('GET /search 503: a cancelled statement, and a read budget that is used up', async () => {
  await whileRefused(guarded.sql, 'pod', async () => assertDatabaseBusy(await guarded.get('/search?q=web', { token })))
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get('/search?q=web', { token }), CHARGE_KIB, budget.totalKib)
  release()
  assert.equal((await guarded.get('/search?q=web', { token })).status, 200)
})
