import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPackages } from '../jobs/supply-chain/steps.ts'
import { supplyChainRefresh } from '../jobs/supply-chain-refresh.ts'
import { newImage, storeCoverage, storeExecutables } from './runtime/rows.ts'
import { startApp, TOKENS } from './support/app.ts'
import { container, newDigest, newNamespace, replica } from './support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'
import { component, finding, storeFindings, storeSbom } from './support/supply-chain.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' })
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

type Item = Record<string, unknown> & {
  name: string
  version: string
  imageDigest: string
  evidence: string
  purl: string
}

const context = (target = app) => ({ ...target.deps, signal: new AbortController().signal }) as never

async function page(query: Record<string, string>, target = app) {
  const answer = await target.get(`/components?${new URLSearchParams(query)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Item[]; nextAfter: string | null; notCovered: number; notRead: number }
}
const items = async (query: Record<string, string>) => (await page(query)).items
const shorts = async (query: Record<string, string>) =>
  (await items(query)).map(({ name, version }) => `${name} ${version}`)

async function runImage(fields: Record<string, unknown> = {}, namespace = 'shop', target = app): Promise<string> {
  const digest = newDigest()
  await target.post(
    '/pod/spec',
    replica(namespace, [container('app', digest, fields)], { pod_name: `pod-${digest.slice(-8)}` }),
  )
  return digest
}

test('GET /components 200: every key in wire order; product names of sources', async () => {
  for (const target of [app, products]) {
    const digest = await runImage({ repository: 'registry.test/team/keys' }, 'keys', target)
    const purl = 'pkg:maven/org.keys/keys-core@2.14.1'
    await storeSbom(target, digest, 'operator-scanner', [
      component('org.keys:keys-core', { version: '2.14.1', purl, type: 'jar' }),
    ])
    const { text } = await target.get('/components?name=KEYS-core')
    const source = target === app ? 'operator-scanner' : 'trivy-operator'
    const workload = { clusterId: 'primary', namespace: 'keys', kind: 'Deployment', name: 'web', running: true }
    assert.deepEqual(JSON.parse(text), {
      items: [
        {
          ...{
            name: 'org.keys:keys-core',
            version: '2.14.1',
            purl,
            type: 'jar',
            evidence: 'sbom',
            imageDigest: digest,
          },
          ...{
            repository: 'registry.test/team/keys',
            tags: ['v1'],
            running: true,
            join: 'image_id',
            sources: [source],
          },
          ...{ workloads: [workload], workloadCount: 1, inUse: null, inUseState: 'unknown' },
          inUseDetail: {
            ...{ state: 'unknown', reason: 'no_runtime_data', observedSince: null, windowHours: 24, containers: 1 },
            coverage: 'interpreted',
          },
        },
      ],
      ...{ nextAfter: null, notCovered: 0, notRead: 0 },
    })
    assert.deepEqual(Object.keys(JSON.parse(text).items[0]).slice(0, 6), [
      'name',
      'version',
      'purl',
      'type',
      'evidence',
      'imageDigest',
    ])
  }
})

test('GET /components 200: by name in any case, by URL with a version or any, by version, running or not', async () => {
  const digest = await runImage()
  const gone = await runImage({ state: 'terminated' })
  const purl = (version: string) => `pkg:deb/debian/libfilter@${version}`
  await storeSbom(app, digest, 'operator-scanner', [
    component('libfilter', { version: '1', purl: `${purl('1')}?arch=amd64` }),
    component('LibFilter', { version: '2', purl: purl('2') }),
    component('libfilter', { version: '3' }),
    component('libfilter-dev', { version: '1', purl: 'pkg:deb/debian/libfilter-dev@1' }),
    component('libfilter_dev', { version: '1' }),
  ])
  await storeSbom(app, gone, 'operator-scanner', [component('libfilter', { version: '9', purl: purl('9') })])
  const all = ['LibFilter 2', 'libfilter 1', 'libfilter 3', 'libfilter 9']
  assert.deepEqual(await shorts({ name: 'LIBFILTER' }), all)
  assert.deepEqual(await shorts({ name: ' libfilter ' }), all, 'blanks around it')
  assert.deepEqual(await shorts({ purl: 'pkg:deb/debian/libfilter' }), all, 'an entry without a URL counts by its name')
  assert.deepEqual(await shorts({ purl: 'PKG:deb/debian/libfilter@1' }), ['libfilter 1'], 'any qualifiers')
  assert.deepEqual(await shorts({ purl: `${purl('1')}?arch=amd64` }), ['libfilter 1'])
  assert.deepEqual(await shorts({ purl: `${purl('1')}?arch=arm64` }), [])
  assert.deepEqual(
    await shorts({ purl: `${purl('2')}?arch=arm64` }),
    ['LibFilter 2'],
    'an entry without qualifiers may be it',
  )
  assert.deepEqual(await shorts({ purl: purl('3') }), ['libfilter 3'])
  assert.deepEqual(await shorts({ name: 'libfilter', version: '1' }), ['libfilter 1'])
  assert.deepEqual(await shorts({ name: 'libfilter', running: 'false' }), ['libfilter 9'])
  assert.deepEqual(await shorts({ name: 'libfilter', running: 'true' }), all.slice(0, 3))
  assert.deepEqual(await shorts({ name: 'libfilter%' }), [])
  assert.deepEqual(await shorts({ name: 'libfilter', purl: 'pkg:deb/debian/libfilter-dev' }), [])
  assert.deepEqual(await shorts({ name: 'libfilter', version: '', purl: ' ', in_use: '' }), all, 'blank is no filter')
})

test('GET /components 200: packages that only a report names are marked, those of an SBOM are not repeated', async () => {
  const [both, report] = [await runImage(), await runImage()]
  const of = (version: string) => finding('CVE-1', { package_name: 'marked', installed_version: version })
  await storeSbom(app, both, 'registry', [component('marked', { version: '1' })])
  await storeFindings(app, both, 'operator-scanner', [of('1'), of('2')])
  await storeFindings(app, report, 'db-matcher', [of(''), { ...of('1'), vuln_id: 'CVE-2' }, of('1')])
  const found = (await items({ name: 'marked' })).map(({ imageDigest, version, evidence }) => [
    imageDigest,
    version,
    evidence,
  ])
  const expected = [
    ...[
      [both, '1', 'sbom'],
      [both, '2', 'findings'],
    ],
    ...[
      [report, '1', 'findings'],
      [report, null, 'findings'],
    ],
  ]
  assert.deepEqual(found, both < report ? expected : [...expected.slice(2), ...expected.slice(0, 2)])
})

test('GET /components 200: only payloads that stand for an image count, and the closest join is shown', async () => {
  const [digest, platform] = [await runImage(), newDigest()]
  await storeSbom(app, platform, 'registry', [component('joined', { version: '1' })], { index_digest: digest })
  await storeSbom(app, newDigest(), 'registry', [component('joined', { version: 'elsewhere' })])
  assert.deepEqual(
    (await items({ name: 'joined' })).map(({ join, version }) => [join, version]),
    [['platform_manifest', '1']],
  )
  await storeSbom(app, digest, 'registry', [component('other')])
  assert.deepEqual(await items({ name: 'joined' }), [], 'the SBOM of the very digest answers alone')
  await storeSbom(app, digest, 'operator-scanner', [component('joined', { version: '1' })])
  const [item] = await items({ name: 'joined' })
  assert.deepEqual([item!.join, item!.sources], ['image_id', ['operator-scanner']])
})

test('GET /components 200: pages by image, those that run first, never lose or repeat an item', async () => {
  const digests = await Promise.all(
    Array.from({ length: 5 }, (_, i) => runImage(i % 2 === 0 ? {} : { state: 'terminated' })),
  )
  for (const digest of digests)
    await storeSbom(
      app,
      digest,
      'registry',
      [null, '1', '2'].map((version) => component('paged', { version, purl: version && `pkg:npm/paged@${version}` })),
    )
  const whole = await items({ name: 'paged' })
  assert.equal(whole.length, 15)
  assert.deepEqual(
    whole.map(({ running }) => running),
    [...Array(9).fill(true), ...Array(6).fill(false)],
  )
  for (const limit of [1, 2, 4, 15]) {
    const seen: Item[] = []
    for (let after: string | null = ''; after !== null; ) {
      const read: Awaited<ReturnType<typeof page>> = await page({ name: 'paged', limit: `${limit}`, after })
      assert.ok(read.items.length <= limit)
      seen.push(...read.items)
      after = read.nextAfter
    }
    assert.deepEqual(seen, whole)
  }
})

test('GET /components 200: a walk past images without an item ends a page early, and goes on', async () => {
  await app.sql`
    with digests as (select 'sha256:e' || lpad(to_hex(n), 63, '0') as digest, n from generate_series(1, 502) n),
    images as (
      insert into image (digest, tags, digest_kind, first_seen, last_seen)
      select d.digest, '{}', 'repo', now(), now() from digests d),
    reports as (
      insert into image_report (digest, source, kind, digest_kind, platform_manifests, manifest_digests, scanned_at, os_eosl,
                                observed_in, content_hash, item_count, sbom_sources, post, received_at)
      select d.digest, 'registry', 'sbom', 'unknown', '{}', '{}', now(), false, '[]', 'x', 1, '{}', 'walk-' || d.n, now()
      from digests d)
    insert into image_component (digest, source, position, name, version, licenses, file_paths)
    select d.digest, 'registry', 1, 'walked', d.n::text, '{}', '{}' from digests d`
  await supplyChainRefresh.run(context())
  const first = await page({ name: 'walked', version: '502' })
  assert.deepEqual([first.items, typeof first.nextAfter], [[], 'string'])
  const second = await page({ name: 'walked', version: '502', after: first.nextAfter! })
  assert.deepEqual([second.items.map(({ version }) => version), second.nextAfter], [['502'], null])
})

test('GET /components 200: an artifact is found in what the job has read', async () => {
  const digest = await runImage()
  await storeSbom(app, digest, 'registry', [component('org.read:Read-Artifact'), component('read\\')])
  await readPackages(context())
  assert.deepEqual(await shorts({ name: 'read-artifact' }), ['org.read:Read-Artifact null'])
  const found = await app.get(`/search?${new URLSearchParams({ q: 'read\\' })}`)
  assert.deepEqual(
    found.json.hits.map(({ name }: Item) => name),
    ['read\\'],
  )
})

test('GET /components 200: use as GET /images/{digest}/sbom says it, and filters by it', async () => {
  const image = newImage()
  const namespace = newNamespace()
  await app.post('/pod/spec', replica(namespace, [container('app', image)], { pod_name: 'used-0' }))
  const deb = (name: string, file_paths: string[]) =>
    component(name, { type: 'deb', class: 'os-pkgs', version: '1', file_paths })
  await storeSbom(app, image, 'operator-scanner', [
    ...[
      deb('used:ran', ['usr/bin/ran']),
      deb('used:idle', ['usr/bin/idle']),
      component('used:script', { type: 'npm' }),
    ],
    deb('used:bare', []),
  ])
  const place = { image, namespace, workload: 'web', container: 'app' }
  await storeExecutables(app.sql, [{ ...place, path: '/usr/bin/ran' }] as never)
  await storeCoverage(app.sql, [{ ...place, pod: 'used-0', secs: 3_600 * 48 }] as never)
  for (const isLinked of [false, true]) {
    if (isLinked) await supplyChainRefresh.run(context())
    const sbom = (await app.get(`/images/${image}/sbom`)).json.items as Item[]
    for (const one of sbom) {
      const [item] = await items({ name: one.name })
      const use = ({ inUse, inUseState, inUseDetail }: Item) => ({ inUse, inUseState, inUseDetail })
      assert.deepEqual(use(item!), use(one), one.name)
      const states = ['executed', 'loaded', 'unknown', 'installed_not_observed']
      for (const state of states)
        assert.equal((await items({ name: one.name, in_use: state })).length, Number(state === one.inUseState), state)
    }
    if (isLinked) assert.equal(new Set(sbom.map((one) => one.inUseState)).size > 1, true, 'states differ')
  }
})

test('GET /components 200: a payload that is replaced while the job reads it is looked at itself until the next pass', async () => {
  const digest = await runImage()
  const of = (version: string, name = 'raced') => [component(name, { version })]
  await storeSbom(app, digest, 'registry', of('1'))
  await app.sql.begin(async (held) => {
    await storeSbom({ sql: held as never }, digest, 'registry', of('2', 'raced-now'))
    // The job reads the old content, and does not wait for the row of the report.
    await readPackages(context())
  })
  const unread = await app.sql`
    select from image_report where digest = ${digest} and packages_hash is distinct from content_hash`
  assert.equal(unread.length, 1, 'it is not marked as read')
  assert.deepEqual(await shorts({ name: 'raced-now' }), ['raced-now 2'])
  assert.deepEqual(await shorts({ name: 'raced' }), [])
  await supplyChainRefresh.run(context())
  assert.deepEqual(await shorts({ name: 'raced-now' }), ['raced-now 2'])
})

test('GET /components 200: content that comes back is read again', async () => {
  const digest = await runImage()
  const post = (name: string) => storeSbom(app, digest, 'registry', [component(name)], { content_hash: name })
  await post('back-x')
  await readPackages(context())
  await post('back-y')
  await app.sql`select * from read_packages('next', 500, 1000)`
  await post('back-x')
  await app.sql`select mark_packages('next')`
  assert.equal((await items({ name: 'back-x' })).length, 1)
  await readPackages(context())
  assert.deepEqual([(await items({ name: 'back-x' })).length, (await items({ name: 'back-y' })).length], [1, 0])
})

test('GET /components 200: an SBOM of which the job has read the packages in another order is looked at itself', async () => {
  const digest = await runImage()
  const list = ['placed-a', 'placed-b', 'placed-a', 'placed-c'].map((name, i) => component(name, { version: `${i}` }))
  await storeSbom(app, digest, 'registry', list)
  const asStored = async () => [await shorts({ name: 'placed-a' }), await shorts({ name: 'placed-c' })]
  const expected = [['placed-a 0', 'placed-a 2'], ['placed-c 3']]
  assert.deepEqual(await asStored(), expected)
  // The table has its rows in another order than the SBOM.
  await app.sql`
    with moved as (delete from image_component where digest = ${digest} returning *)
    insert into image_component select * from moved order by position desc`
  await supplyChainRefresh.run(context())
  assert.deepEqual(await asStored(), expected)
  // As the previous release writes it.
  await app.sql`
    update payload_packages set is_in_order = false, packages = array(select p.id from unnest(packages) with ordinality p(id, n) order by p.n desc)
    where digest = ${digest}`
  assert.deepEqual(await asStored(), expected)
})

test('GET /components 200: packages that nobody has any more are forgotten, and found again when they come back', async () => {
  const digest = await runImage()
  const entries = async () => (await app.sql`select from package_entry where name = 'forgotten'`).length
  await storeSbom(app, digest, 'registry', [component('forgotten')])
  await supplyChainRefresh.run(context())
  assert.equal(await entries(), 1)
  await storeSbom(app, digest, 'registry', [component('other')])
  await supplyChainRefresh.run(context())
  for (let i = 0; (await entries()) > 0; i++) {
    assert.ok(i < 200, 'each pass looks at the entries from a random one on')
    await app.sql`select forget_packages(2000)`
  }
  await storeSbom(app, digest, 'registry', [component('forgotten')])
  await supplyChainRefresh.run(context())
  assert.deepEqual([await entries(), (await items({ name: 'forgotten' })).length], [1, 1])
})

test('GET /components 400: neither name nor URL, and values that break a rule', async () => {
  const refused = async (query: string, says: RegExp) => {
    const answer = await app.get(`/components?${query}`)
    assert.equal(answer.status, 400, query)
    assert.match(answer.text, says)
  }
  for (const query of ['', 'version=1', 'name=&purl=+', 'running=true'])
    await refused(query, /name: expected `name` or `purl`, or both/)
  await refused('purl=log4j', /purl: expected a package URL, which begins with pkg:/)
  for (const field of ['name', 'purl', 'version'])
    await refused(`${field === 'name' ? '' : 'name=a&'}${field}=pkg:%00`, new RegExp(`${field}: U\\+0000`))
  await refused('name=a&running=maybe', /running: /)
  await refused('name=a&in_use=maybe', /in_use: /)
  await refused('name=a&limit=x', /limit: /)
  await refused('name=a&after=x', /after: expected the nextAfter/)
  await refused('name=a&namespace=b', /namespace/)
})

test('GET /components 200: long and strange texts find nothing, quickly', async () => {
  for (const name of ['x'.repeat(10_000), '%', '_', '\\', "'", '\u{10ffff}', '\ud800'])
    assert.deepEqual(await items({ name }), [])
  for (const purl of [
    'pkg:',
    'pkg:/',
    'pkg:@',
    `pkg:${'@/'.repeat(4_000)}`,
    `pkg:${'%40'.repeat(3_000)}`,
    `pkg:${'a/@'.repeat(3_000)}`,
  ])
    assert.deepEqual(await items({ purl }), [])
})

test('GET /components 401: without a token', async () => {
  assertUnauthorized(await guarded.get('/components?name=a'))
  assert.equal((await guarded.get('/components?name=a', { token })).status, 200)
})

test('GET /components 503: a cancelled statement, and a read budget that is used up; 12 KiB for each item and one more', async () => {
  await whileRefused(guarded.sql, 'image', async () =>
    assertDatabaseBusy(await guarded.get('/components?name=a', { token })),
  )
  const { budget } = guarded.deps
  for (const [query, kib] of [
    ['', 26 * 12],
    ['&limit=1', 24],
    ['&limit=9999', 501 * 12],
  ] as const) {
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(`/components?name=a${query}`, { token }), kib, budget.totalKib)
    release()
  }
})
