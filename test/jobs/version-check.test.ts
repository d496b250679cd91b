import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { JITTER } from '../../jobs/job.ts'
import { versionCheck } from '../../jobs/version-check.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { type Database, DatabaseBusy, DatabaseUnavailable } from '../../lib/db/index.ts'
import { architecture, checkInUrl, podsBucket, readReleases } from '../../lib/telemetry/check-in.ts'
import { VERSION } from '../../lib/version.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { startScene } from './scene.ts'

let answer: StubAnswer | Promise<StubAnswer> = { json: { latest: { chart: '2.5.0', broker: '7.0.0' } } }
const stub = await startStub(() => answer)
const env = {
  TELEMETRY_ENDPOINT: stub.url,
  CHART_VERSION: '2.4.0+build.7',
  KUBE_VERSION: 'v1.31.2',
  FEATURES: 'ai,netpol',
}
const scene = await startScene(versionCheck, loadConfig({ NODE_ENV: 'test', ...env }))
const { sql, run, logged } = scene

beforeEach(async () => {
  await sql`truncate pod, pod_address, node_facts`
  await sql`update install set latest = null, checked_at = null, claimed_at = null`
  stub.heard.length = 0
  logged.length = 0
  answer = { json: { latest: { chart: '2.5.0', broker: '7.0.0' } } }
})

const install = async () => ({ ...(await sql`select install_id::text, latest, checked_at from install`)[0] })

test('a check is one GET with the documented parameters in order, without a body or further headers', async () => {
  for (const [pod_name, node_name, is_dead] of [
    ['secret-a', 'secret-node-1', false],
    ['secret-b', 'secret-node-1', false],
    ['secret-c', 'secret-node-2', false],
    ['secret-d', 'secret-node-3', true],
  ] as const)
    await scene.pod({ pod_name, node_name, is_dead, pod_namespace: 'secret-ns', pod_ip: '10.41.77.1' })
  const facts = {
    node_name: 'secret-node-1',
    provider: 'aws',
    distro: 'eks',
    cni: 'cilium',
    ip_family: 'dual',
    node_os: 'cos',
  }
  assert.equal((await scene.post('/node/facts', facts)).status, 200)

  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
  assert.equal(stub.heard.length, 1)
  const [{ method, path, query, rawHeaders, body }] = stub.heard as [(typeof stub.heard)[0]]
  const { install_id } = await install()
  assert.deepEqual([method, path, body], ['GET', '/v1/check', ''])
  assert.deepEqual(Object.entries(query), [
    ['install', install_id],
    ['broker', VERSION],
    ['chart', '2.4.0'],
    ['k8s', 'v1.31.2'],
    ['nodes', '2'],
    ['arch', architecture(process.arch)],
    ['provider', 'aws'],
    ['distro', 'eks'],
    ['cni', 'cilium'],
    ['ip_family', 'dual'],
    ['node_os', 'cos'],
    ['pods_bucket', '1-9'],
    ['features', 'ai,netpol'],
  ])
  assert.match(install_id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const headers = Object.fromEntries(
    rawHeaders.flatMap((one, i) => (i % 2 ? [] : [[one.toLowerCase(), rawHeaders[i + 1]]])),
  )
  assert.deepEqual(headers, {
    'user-agent': `kguardian-broker/${VERSION}`,
    host: new URL(stub.url).host,
    connection: headers.connection,
  })
})

test('the answer is stored in the database, and the install id stays', async () => {
  const before = await install()
  await run()
  const after = await install()
  assert.deepEqual(after.latest, { chart: '2.5.0', broker: '7.0.0' })
  assert.notEqual(after.checked_at, null)
  assert.equal(after.install_id, before.install_id)
})

const failures: [what: string, answer: StubAnswer][] = [
  ['an error status', { status: 500, json: { latest: { chart: '9.9.9' } } }],
  ['a redirect', { status: 302, headers: { location: '/v1/check' } }],
  ['text', { text: 'nonsense' }],
  ['no latest', { json: {} }],
  ['null', { text: 'null' }],
  ['a list', { json: { latest: ['2.5.0'] } }],
  ['versions that are no text', { json: { latest: { chart: 2.5 } } }],
  ['a component that is no name', { json: { latest: { 'a b': '1' } } }],
  [
    'very many components',
    { json: { latest: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`c${i}`, '1'])) } },
  ],
  ['an answer above 64 KiB', { text: `{"latest":{}}${' '.repeat(65 * 1024)}` }],
  ['a cut answer', 'cut'],
  ['a cut connection', 'reset'],
]
for (const [what, bad] of failures) {
  test(`${what}: the pass fails silently, the stored versions stay, and the next pass is skipped`, async () => {
    await sql`update install set latest = '{"chart":"2.4.9"}', checked_at = '2024-05-01'`
    const before = await install()
    answer = bad
    assert.deepEqual(await run(), { outcome: 'failed', rows: 0, batches: 1 })
    assert.equal(stub.heard.length, 1)
    assert.deepEqual(await install(), before)
    assert.deepEqual(
      logged.filter(({ level }) => Number(level) > 20),
      [],
    )
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.equal(stub.heard.length, 1)
  })
}

test('concurrent passes of four processes send one request', async (t) => {
  const others = Array.from({ length: 3 }, () => scene.otherProcess(t))
  const passes = await Promise.all([run(), ...others.map((db) => run({ db }))])
  assert.deepEqual(passes.map(({ outcome }) => outcome).sort(), ['done', 'skipped', 'skipped', 'skipped'])
  assert.equal(stub.heard.length, 1)
})

for (const [intervalSecs, claimSecs] of [
  [86_400, 77_700],
  [3_600, 3_180],
] as const) {
  test(`with an interval of ${intervalSecs} s, the next request may be sent ${claimSecs} s after the last one, and only one is`, async () => {
    const config = { ...scene.context().config, telemetryIntervalSecs: intervalSecs }
    await run({ config })
    await sql`update install set claimed_at = claimed_at - make_interval(secs => ${claimSecs - 30})`
    assert.equal((await run({ config })).outcome, 'skipped')
    await sql`update install set claimed_at = claimed_at - interval '30 s'`
    assert.equal((await run({ config })).outcome, 'done')
    assert.equal((await run({ config })).outcome, 'skipped')
    assert.equal(stub.heard.length, 2)
  })
}

test('a claim from before the clock was set back keeps no process from checking in', async () => {
  await sql`update install set claimed_at = now() at time zone 'utc' + interval '1 year'`
  assert.equal((await run()).outcome, 'done')
  assert.equal((await run()).outcome, 'skipped')
})

test('a failed request is not repeated before the next one is due, however many passes run', async (t) => {
  answer = 'reset'
  for (let hour = 0; hour < 24; hour++) {
    const outcomes = await Promise.all([run(), run({ db: hour % 8 === 0 ? scene.otherProcess(t) : scene.db })])
    assert.deepEqual(
      outcomes.map(({ outcome }) => outcome).sort(),
      hour === 0 || hour === 22 ? ['failed', 'skipped'] : ['skipped', 'skipped'],
    )
    await sql`update install set claimed_at = claimed_at - interval '1 h'`
  }
  assert.equal(stub.heard.length, 2)
})

/** The database, except that statement `n`, counted from 1, fails with this error. */
function failingAt(n: number, error: Error): Database {
  let asked = 0
  const job = Object.assign(
    async (statement: Parameters<Database['job']>[0]) => {
      if (++asked === n) throw error
      return scene.db.job(statement)
    },
    {
      json: async (statement: Parameters<Database['job']['json']>[0]) => {
        if (++asked === n) throw error
        return scene.db.job.json(statement)
      },
    },
  )
  return { job } as unknown as Database
}

test('a pass fails and sends no request when the database is unavailable', async () => {
  for (const n of [1, 2, 3]) {
    const outage = new DatabaseUnavailable('no connection', 'ECONNREFUSED')
    await assert.rejects(run({ db: failingAt(n, outage) }), outage)
    assert.equal(stub.heard.length, 0)
  }
  assert.equal((await run()).outcome, 'done')
})

test('the request says `unknown` when the statement that reads the cluster is cancelled', async () => {
  assert.equal((await run({ db: failingAt(2, new DatabaseBusy('canceling statement', '57014')) })).outcome, 'done')
  const { nodes, pods_bucket, cni, ip_family, provider, distro, node_os } = stub.heard[0]!.query
  assert.deepEqual([nodes, pods_bucket], ['0', 'unknown'])
  assert.deepEqual(new Set([cni, ip_family, provider, distro, node_os]), new Set(['unknown']))
})

test('a pass that is aborted before its request leaves it to the next pass', async () => {
  assert.deepEqual(await run({ signal: AbortSignal.abort() }), { outcome: 'aborted', rows: 0, batches: 0 })
  assert.equal(stub.heard.length, 0)
  assert.equal((await run()).outcome, 'done')
})

test('a pass that is aborted during its request ends', async () => {
  const abort = new AbortController()
  answer = 'hang'
  const pass = run({ signal: abort.signal })
  await until('it has asked', () => stub.heard.length === 1)
  abort.abort()
  assert.equal((await pass).outcome, 'failed')
})

test('two passes of one process with the least time between them may both send a request', () => {
  assert.ok(77_700 < 86_400 * (1 - JITTER) && 3_180 < 3_600 * (1 - JITTER))
})

test('the check is off without an endpoint or when disabled, and runs at most once an hour', () => {
  const every = (more: object) => versionCheck.everySecs(loadConfig({ ...env, ...more }))
  assert.equal(every({}), 86_400)
  assert.equal(every({ TELEMETRY_INTERVAL_SECS: '60' }), 3_600)
  assert.equal(every({ TELEMETRY_ENABLED: 'off' }), null)
  assert.equal(every({ TELEMETRY_ENDPOINT: '' }), null)
  assert.equal(versionCheck.firstAfterSecs, 120)
})

test('an endpoint with a path is used unchanged, one without a path gets /v1/check', () => {
  const sent = {
    install: 'i',
    chart: 'c',
    k8s: 'k',
    nodes: 1,
    provider: 'p',
    distro: 'd',
    cni: 'c',
    ip_family: 'f',
    node_os: 'o',
    pods_bucket: '0',
    features: 'none',
  }
  const url = (endpoint: string) => String(checkInUrl(endpoint, sent)).split('?')[0]
  assert.equal(url('https://v.test'), 'https://v.test/v1/check')
  assert.equal(url('https://v.test/'), 'https://v.test/v1/check')
  assert.equal(url('https://v.test/v2/x'), 'https://v.test/v2/x')
  assert.equal(url('http://v.test:8080/v1/check'), 'http://v.test:8080/v1/check')
})

test('the number of pods is reported as a range between powers of ten', () => {
  const buckets = {
    0: '0',
    1: '1-9',
    9: '1-9',
    10: '10-99',
    99: '10-99',
    100: '100-999',
    999: '100-999',
    1000: '1000-9999',
    9999: '1000-9999',
    10000: '10000+',
    5000000: '10000+',
  }
  for (const [pods, bucket] of Object.entries(buckets)) assert.equal(podsBucket(Number(pods)), bucket)
})

test('architectures have the names of uname; other names are cleaned and cut', () => {
  assert.deepEqual(['x64', 'arm64', 'riscv64', 'a-very-long-name-it-is'].map(architecture), [
    'x86_64',
    'aarch64',
    'riscv64',
    'a_very_long_name',
  ])
})

test('versions are read unchanged, and other keys are ignored', () => {
  assert.deepEqual(readReleases('{"latest":{"chart":"1.2.3+x","llm-bridge":"0"},"more":1}'), {
    chart: '1.2.3+x',
    'llm-bridge': '0',
  })
})
