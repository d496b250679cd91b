import assert from 'node:assert/strict'
import http from 'node:http'
import test from 'node:test'
import { close, listen } from '../lib/http/server/listen.ts'
import { startApp, TOKENS } from './support/app.ts'
import { type StubAnswer, startStub } from './support/stub.ts'
import { until } from './support/until.ts'

let answer: (query: Record<string, string>) => StubAnswer = () => ({ status: 404 })
const evaluator = await startStub(({ query }) => answer(query))
const app = await startApp({ ...TOKENS, EVALUATOR_URL: `${evaluator.url}//` })
const read = { token: TOKENS.BROKER_TOKEN_READ }

const result = (verdict: string, more: object = {}) => ({
  policy: 'shop/signed',
  namespace: 'shop',
  workload: 'Deployment/web',
  container: 'app',
  digest: `sha256:${'a'.repeat(64)}`,
  image: 'registry.test/shop/web:v1',
  verdict,
  ...more,
})
const AT = '2025-06-07T08:09:10.123456789+02:00'
const says = (results: unknown, more: object = { evaluatedAt: AT }): StubAnswer => ({ json: { ...more, results } })
const trust = (query = '', options: { token?: string; headers?: Record<string, string> } = read) =>
  app.get(`/image-trust${query}`, options)

const NOTHING = {
  evaluatedAt: null,
  total: 0,
  wouldDeny: 0,
  unknown: 0,
  trusted: 0,
  policies: [],
  results: [],
  truncated: false,
}
const ALL = [
  result('Trusted', { container: 'zeta' }),
  result('Unknown', { reason: 'not-checked', policy: 'cluster/all' }),
  result('Pending', { reason: null, container: 'odd' }),
  result('WouldDeny', { reason: 'unsigned', workload: 'StatefulSet/db' }),
  result('Trusted', { container: 'alpha', reason: '', extra: { a: [1] } }),
  result('WouldDeny', { reason: 'invalid', namespace: 'bank', policy: 'bank/strict', workload: 'Deployment/led/ger' }),
]

test('GET /image-trust 200: the worst first, with counts and policies', async () => {
  answer = () => says(ALL)
  const { status, text } = await trust()
  assert.equal(status, 200)
  const ordered = [
    ALL[5],
    ALL[3],
    ALL[1],
    result('Pending', { container: 'odd' }),
    result('Trusted', { container: 'alpha' }),
    result('Trusted', { container: 'zeta' }),
  ]
  const expected = {
    available: true,
    evaluatedAt: AT,
    total: 6,
    wouldDeny: 2,
    unknown: 2,
    trusted: 2,
    policies: ['bank/strict', 'cluster/all', 'shop/signed'],
    results: ordered,
    truncated: false,
  }
  assert.equal(text, JSON.stringify(expected), 'with its keys in order')
})

test('GET /image-trust 200: ordered by namespace, workload, container, policy', async () => {
  const places = [
    { namespace: 'a', workload: 'B/b', container: 'b', policy: 'b/b' },
    { namespace: 'a', workload: 'B/b', container: 'b', policy: 'b/c' },
    { namespace: 'a', workload: 'B/b', container: 'c', policy: 'a/a' },
    { namespace: 'a', workload: 'B/c', container: 'a', policy: 'a/a' },
    { namespace: 'b', workload: 'A/a', container: 'a', policy: 'a/a' },
    { namespace: '\u{e9}', workload: 'A/a', container: 'a', policy: 'a/a' },
  ].map((place) => result('Unknown', place))
  answer = () => says(places.toReversed())
  assert.deepEqual((await trust()).json.results, places)
})

test('GET /image-trust 200: before the first pass of the evaluator', async () => {
  for (const results of [[], null]) {
    answer = () => says(results, { evaluatedAt: null })
    assert.deepEqual((await trust()).json, { available: true, ...NOTHING })
  }
})

test('GET /image-trust 200: the evaluator gets only namespace and verdict, with the read token', async () => {
  answer = () => says([])
  evaluator.heard.length = 0
  await trust('?namespace=a%20%26b&verdict=WouldDeny&workload_kind=Deployment&workload_name=web&limit=7')
  await trust('?namespace=%20&verdict=&workload_kind=&workload_name=&limit=7')
  const [narrow, wide] = evaluator.heard
  assert.deepEqual(
    [narrow!.method, narrow!.path, narrow!.query, narrow!.body],
    ['GET', '/image-trust', { namespace: 'a &b', verdict: 'WouldDeny' }, ''],
  )
  assert.deepEqual([wide!.path, wide!.query], ['/image-trust', {}])
  assert.equal(narrow!.headers.authorization, `Bearer ${TOKENS.BROKER_TOKEN_READ}`)
  assert.equal(narrow!.headers['accept-encoding'], 'identity')
})

test('GET /image-trust 200: the evaluator gets the shared token without a read token, and no token without authentication', async () => {
  answer = () => says([])
  const { BROKER_TOKEN_READ: _, ...others } = TOKENS
  const shared = await startApp({ ...others, EVALUATOR_URL: evaluator.url })
  const open = await startApp({ EVALUATOR_URL: evaluator.url })
  evaluator.heard.length = 0
  assert.equal((await shared.get('/image-trust', { token: TOKENS.BROKER_AUTH_TOKEN })).json.available, true)
  assert.equal((await open.get('/image-trust')).json.available, true)
  assert.deepEqual(
    evaluator.heard.map((one) => one.headers.authorization),
    [`Bearer ${TOKENS.BROKER_AUTH_TOKEN}`, undefined],
  )
})

const found = async (query: string) => {
  const { json } = await trust(query)
  assert.equal(json.available, true)
  assert.equal(json.total, json.wouldDeny + json.unknown + json.trusted)
  assert.equal(json.total, json.results.length)
  return json.results.map((one: { workload: string; container: string }) => `${one.workload} ${one.container}`)
}

test('GET /image-trust 200: filters by workload, split at its first slash', async () => {
  answer = () => says([...ALL, result('Trusted', { workload: 'web' })])
  assert.deepEqual(await found('?workload_kind=statefulSET'), ['StatefulSet/db app'])
  assert.deepEqual(await found('?workload_name=led/ger'), ['Deployment/led/ger app'])
  assert.deepEqual(await found('?workload_name=ger'), [])
  assert.deepEqual(await found('?workload_name=WEB'), [])
  assert.deepEqual(await found('?workload_kind=web'), [])
  assert.deepEqual(await found('?workload_name=web&verdict=Trusted'), ['Deployment/web alpha', 'Deployment/web zeta'])
  assert.deepEqual(await found('?workload_kind=deployment&workload_name=db'), [])
  assert.deepEqual((await trust('?workload_name=db')).json.policies, ['shop/signed'], 'of those that match')
})

test('GET /image-trust 200: results of an evaluator that does not filter are filtered', async () => {
  answer = () => says(ALL)
  assert.deepEqual(await found('?namespace=bank'), ['Deployment/led/ger app'])
  assert.deepEqual(await found('?namespace=ban'), [])
  assert.deepEqual(await found('?verdict=WouldDeny'), ['Deployment/led/ger app', 'StatefulSet/db app'])
  assert.deepEqual(await found('?verdict=Unknown'), ['Deployment/web app', 'Deployment/web odd'], 'whatever is neither')
})

test('GET /image-trust 200: the limit cuts the list but not the counts', async () => {
  const many = Array.from({ length: 2_100 }, (_, i) =>
    result(['Trusted', 'WouldDeny', 'Unknown'][i % 3]!, {
      container: `c${String(2_100 - i).padStart(4, '0')}`,
      policy: `shop/p${i % 4}`,
    }),
  )
  answer = () => says(many)
  for (const [limit, size] of [
    ['', 200],
    ['-5', 1],
    ['0', 1],
    ['1', 1],
    ['700', 700],
    ['2000', 2_000],
    ['99999999999999999999', 2_000],
  ] as const) {
    const { json } = await trust(limit === '' ? '' : `?limit=${limit}`)
    assert.deepEqual(
      [
        json.results.length,
        json.truncated,
        json.total,
        json.wouldDeny,
        json.unknown,
        json.trusted,
        json.policies.length,
      ],
      [size, true, 2_100, 700, 700, 700, 4],
      limit,
    )
    assert.equal(json.results[0].container, 'c0002')
  }
  answer = () => says(many.slice(0, 5))
  assert.deepEqual([(await trust('?limit=5')).json.truncated, (await trust('?limit=4')).json.truncated], [false, true])
})

test('GET /image-trust 400: an unknown verdict, a limit that is no integer, U+0000', async () => {
  answer = () => says([])
  evaluator.heard.length = 0
  for (const query of [
    'verdict=Denied',
    'verdict=trusted',
    'verdict=Trusted,Unknown',
    'limit=all',
    'limit=1.5',
    'limit=',
    'namespace=%00',
    'workload_name=a%00',
  ]) {
    const { status, text } = await trust(`?${query}`)
    assert.equal(status, 400, query)
    assert.match(text, new RegExp(`^Query deserialize error: ${query.split('=')[0]}: `))
  }
  assert.match((await trust('?verdict=Denied')).text, /"Denied" is not one of Trusted, WouldDeny, Unknown/)
  assert.equal(evaluator.heard.length, 0)
})

test('GET /image-trust 401: no token', async () => {
  assert.equal((await app.get('/image-trust')).status, 401)
})

test('GET /image-trust 200: without an evaluator it is not available, and an invalid query is still refused', async () => {
  const alone = await startApp()
  assert.equal(
    (await alone.get('/image-trust')).text,
    JSON.stringify({ available: false, reason: 'no evaluator is configured', ...NOTHING }),
  )
  assert.equal((await alone.get('/image-trust?verdict=x')).status, 400)
})

const reasonOf = async (given: StubAnswer, query = '') => {
  answer = () => given
  const { status, json } = await trust(query)
  const { available, reason, ...rest } = json
  assert.deepEqual([status, available, rest], [200, false, NOTHING])
  assert.doesNotMatch(reason, /127\.0\.0\.1|localhost|https?:|ECONN|secret|:\d/)
  return reason
}

test('GET /image-trust 200: each failure of the evaluator has a fixed phrase', async () => {
  assert.equal(await reasonOf({ status: 404, text: 'secret' }), 'image trust evaluation is off in the evaluator')
  const refused = 'the evaluator refused the read token of the broker'
  assert.equal(await reasonOf({ status: 401, headers: { 'www-authenticate': 'Bearer' }, text: 'secret' }), refused)
  assert.equal(await reasonOf({ status: 403, text: 'secret' }), refused)
  for (const status of [201, 204, 304, 400, 405, 429, 500, 503])
    assert.equal(
      await reasonOf({ status, text: status === 204 || status === 304 ? '' : 'secret' }),
      `the evaluator answered with status ${status}`,
    )
  assert.equal(await reasonOf('reset'), 'the request to the evaluator failed')
  assert.equal(await reasonOf('cut'), 'the answer of the evaluator could not be read')
  assert.equal(
    await reasonOf({ text: 'x', headers: { 'content-encoding': 'br' } }),
    'the answer of the evaluator could not be read',
  )
})

test('GET /image-trust 200: the cause of a failure is logged, and the token is not', async () => {
  app.logged.length = 0
  await reasonOf('reset')
  const line = app.logged.find((one) => one.level === 40)!
  assert.match(String(line.msg), /image trust is not available: the request to the evaluator failed/)
  assert.match((line.err as { message: string }).message, /socket hang up|ECONNRESET/)
  assert.equal(JSON.stringify(app.logged).includes(TOKENS.BROKER_TOKEN_READ), false)
})

test('GET /image-trust 200: a redirect is not followed', async () => {
  const elsewhere = await startStub(() => says([]))
  for (const status of [301, 302, 303, 307, 308])
    assert.equal(
      await reasonOf({ status, headers: { location: `${elsewhere.url}/image-trust` } }),
      `the evaluator answered with status ${status}`,
    )
  assert.equal(elsewhere.connections, 0)
})

test('GET /image-trust 200: an answer in another format is not valid', async () => {
  const invalid = 'the answer of the evaluator is not valid'
  const { verdict: _, ...incomplete } = result('x')
  const bad: StubAnswer[] = [
    ...[
      '',
      'not json',
      '{"results":[',
      '{"results":[]',
      '{"results":[]}}',
      '{"results":[}',
      '{"results":[,]}',
      '[]',
      'null',
      '7',
    ].map((text) => ({ text })),
    ...['{"results":[],"results":[]}', '{"results":[],"resul\\u0074s":[]}', '\ufeff{"results":[]}'].map((text) => ({
      text,
    })),
    ...[{}, { evaluatedAt: null }, { results: 'x' }, { results: {} }, { evaluatedAt: 7, results: [] }].map((json) => ({
      json,
    })),
    ...[7, null, [], 'x', incomplete, result('x', { policy: 7 }), result('x', { reason: 7 })].map((one) => says([one])),
    says([result('x', { image: 'i'.repeat(9_000) })]),
    says([], { evaluatedAt: AT, filler: 'x'.repeat(70_000) }),
  ]
  for (const one of bad) assert.equal(await reasonOf(one), invalid, JSON.stringify(one).slice(0, 100))
})

test('GET /image-trust 200: a client that disconnects ends the request to the evaluator and frees its 16 MiB', async () => {
  const { budget } = app.deps
  const { server, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
  try {
    answer = () => 'hang'
    evaluator.heard.length = 0
    const outgoing = http.get(`http://127.0.0.1:${address.port}/image-trust`, {
      agent: false,
      headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` },
    })
    outgoing.on('error', () => {})
    await until('the evaluator was asked', () => evaluator.heard.length === 1)
    assert.equal(budget.totalKib - budget.availableKib, 16 * 1_024)
    outgoing.destroy()
    await until('the question has ended', () => evaluator.open === 0)
    await until('what it held is given back', () => budget.availableKib === budget.totalKib)
    assert.ok(
      await until('the log tells', () => app.logged.find((one) => one.route === '/image-trust' && one.status === 499)),
    )
  } finally {
    await close(server, 0)
  }
})

test('GET /image-trust 503: a second request is refused when the read budget holds only one', async () => {
  answer = () => 'hang'
  const small = await startApp({
    EVALUATOR_URL: evaluator.url,
    BROKER_READ_MEMORY_BUDGET_MB: '16',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
  })
  evaluator.heard.length = 0
  const first = small.get('/image-trust')
  await until('the evaluator was asked', () => evaluator.heard.length === 1)
  const { status, headers, text } = await small.get('/image-trust')
  assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
  assert.match(text, /^read memory budget exhausted/)
  evaluator.cut()
  assert.equal((await first).json.reason, 'the request to the evaluator failed')
})
