import assert from 'node:assert/strict'
import test from 'node:test'
import { z } from 'zod'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { access, declaredRoutes } from '../../lib/http/access.ts'
import { createNoteIgnored } from '../../lib/http/request/rejections.ts'
import { lookup, NoParameters, query } from '../../lib/http/request/validate.ts'
import { route } from '../../lib/http/route.ts'
import { RateLimitedLog } from '../../lib/observability/rate-limited-log.ts'
import { declarationOf } from '../../lib/openapi/declare.ts'
import { startApp } from '../support/app.ts'
import { stopClock } from '../support/clock.ts'
import { logTo } from '../support/log.ts'

const app = await startApp()
const { deps, get } = app

/** Routes that ignore unknown parameters: old clients call them, or the answer is a single document. */
const IGNORING = [
  ...['/', '/health', '/metrics', '/version', '/openapi.json'],
  ...['/pod/info', '/pod/namespaces', '/pod/name/:name', '/pod/ip/:ip', '/pod/list/:node'],
  ...['/pod/traffic', '/pod/traffic/:name', '/pod/syscalls/:name', '/svc/info', '/svc/ip/:ip'],
  ...['/audit/verdicts', '/node/status', '/cluster/environment'],
  ...['/seccomp/profiles/:namespace/:kind/:name', '/seccomp/profiles/:namespace/:kind/:name/export'],
  ...['/seccomp/profile-file/:namespace/:kind/:name/:hash', '/images/:digest/sbom/cyclonedx', '/attestations/policy'],
  '/workloads',
  ...['capabilities', 'export', 'profile', 'profile/versions', 'profile/versions/:revision', 'profile/diff'].map(
    (end) => `/workloads/:namespace/:kind/:name/${end}`,
  ),
]

const digest = `sha256:${'a'.repeat(64)}`
const VALUES: Record<string, string> = { digest, other: digest, revision: '1', id: 'CVE-2024-1', ip: '10.0.0.1' }
const concrete = (path: string) => path.replace(/:(\w+)/g, (_, name) => VALUES[name] ?? 'x')
const reads = [...declaredRoutes(routes.flatMap((one) => one.routes)).keys()]
  .filter((name) => name.startsWith('GET '))
  .map((name) => name.slice('GET '.length))
/** The names of the parameters of a route, from its schema. */
const known = (path: string): string[] =>
  routes
    .flatMap((one) => one.routes)
    .filter((one) => one.method === 'GET' && one.path === path)
    .flatMap(({ handler }) => Object.keys(declarationOf(handler).query?.shape ?? {}))
/** The required parameters of a route. */
const needed = (path: string): string => {
  if (path === '/search') return 'q=x&'
  if (path === '/components') return 'name=x&'
  return ['/compute/latest', '/compute/contention', '/changes'].includes(path) ? 'namespace=shop&' : ''
}

test('each read route declares whether it refuses or ignores unknown parameters', () => {
  const said = new Map(reads.map((path) => [path, [] as (string | undefined)[]]))
  for (const { method, path, handler } of routes.flatMap((one) => one.routes))
    if (method === 'GET' && declarationOf(handler).query) said.get(path)!.push(declarationOf(handler).unknownParameters)
  assert.deepEqual(
    [...said].filter(([, all]) => all.length !== 1),
    [],
    'give each one query(...)',
  )
  assert.deepEqual(
    [...said]
      .filter(([, [one]]) => one === 'ignored')
      .map(([path]) => path)
      .sort(),
    IGNORING.toSorted(),
  )
})

for (const path of reads.filter((one) => !IGNORING.includes(one))) {
  test(`GET ${path}: an unknown parameter is 400 and the answer names the known ones`, async () => {
    const answer = await get(`${concrete(path)}?${needed(path)}nonsense=1`)
    assert.equal(answer.status, 400)
    const names = known(path)
    const rule =
      names.length > 0 ? `the parameters of this route are ${names.join(', ')}` : 'this route has no parameters'
    assert.equal(answer.text, `Query deserialize error: nonsense: not known here: ${rule}`)
    // The named parameters are not refused as unknown.
    for (const name of names)
      assert.doesNotMatch((await get(`${concrete(path)}?${needed(path)}${name}=1`)).text, /not known here/)
  })
}

for (const path of IGNORING) {
  test(`GET ${path}: an unknown parameter does not change the answer, and is counted`, async () => {
    const counted = async () =>
      (await deps.metrics.ignoredParameters.get()).values.find(({ labels }) => labels.route === path)?.value ?? 0
    const [plain, before] = [await get(concrete(path)), await counted()]
    const answer = await get(`${concrete(path)}?nonsense=1&other=2`)
    assert.equal(answer.status, plain.status)
    if (path !== '/metrics') assert.equal(answer.text, plain.text)
    assert.equal((await counted()) - before, 2)
  })
}

test('ignored parameters are one log line a minute with their number, without their names and values', async (t) => {
  const lines: [message: string, fields: object][] = []
  const log = logTo((_, message, fields) => lines.push([message, fields]))
  const noteIgnored = createNoteIgnored({ metrics: deps.metrics, lines: new RateLimitedLog(log) })
  const own = createApp({ ...deps, noteIgnored }, routes)
  const { tick } = stopClock(t)
  for (let i = 0; i < 3; i++) assert.equal(await (await own.request('/pod/traffic?namespace=shop')).text(), '[]')
  tick(60_000)
  const text = 'parameters that their route does not know were ignored'
  assert.deepEqual(lines, [
    [text, { '/pod/traffic': 1 }],
    [text, { '/pod/traffic': 2 }],
  ])
})

const probe = createApp(deps, [
  route().get(
    '/list/:id',
    access('open'),
    query(z.object({ a: z.string().default(''), b: z.string().default('') })),
    (c) => c.text('x'),
  ),
  route().get('/point', access('open'), lookup.query(NoParameters), (c) => c.text('x')),
])
const textOf = async (path: string) => (await probe.request(path)).text()

test('a route, also of a look-up, refuses unknown parameters by default', async () => {
  const rule = 'not known here: the parameters of this route are a, b'
  assert.equal(await textOf('/list/1?a=1&b=2&a=3'), 'x')
  assert.equal(await textOf('/list/1?a=1&A=1'), `Query deserialize error: A: ${rule}`)
  assert.equal(await textOf('/list/1?c'), `Query deserialize error: c: ${rule}`)
  assert.equal(await textOf('/list/1?&&'), 'x')
  assert.equal(await textOf('/point?c=1'), 'Query deserialize error: c: not known here: this route has no parameters')
  for (const name of ['__proto__', 'toString', 'constructor', 'hasOwnProperty'])
    assert.equal(await textOf(`/list/1?${name}=1`), `Query deserialize error: ${name}: ${rule}`)
})

test('a long parameter name is cut to 64 characters in the answer, and unprintable characters are replaced', async () => {
  const sent = await textOf(`/list/1?${'x'.repeat(5_000)}=1`)
  assert.equal(
    sent,
    `Query deserialize error: ${'x'.repeat(64)}…: not known here: the parameters of this route are a, b`,
  )
  assert.equal(
    await textOf('/list/1?%0a%00%E2%80%AE=1'),
    'Query deserialize error: ???: not known here: the parameters of this route are a, b',
  )
})

/** Every list with pages. */
const withCursor = reads.filter((path) => known(path).includes('after'))

test('a blank after= is the first page of every list', async () => {
  assert.ok(withCursor.length >= 7, withCursor.join())
  for (const path of withCursor) {
    const first = await get(`${concrete(path)}?${needed(path)}`)
    assert.equal(first.status, 200, path)
    for (const blank of ['after=', 'after', 'after=%20%09', 'after=+']) {
      const { status, text } = await get(`${concrete(path)}?${needed(path)}${blank}`)
      // Time passes between the two requests.
      const seen = (one: string) =>
        one.replace(/"staleSeconds":\d+|"observedUntil":"[^"]*"|"from":"[^"]*","to":"[^"]*"/, '')
      assert.deepEqual([status, seen(text)], [200, seen(first.text)], `${path}?${blank}`)
    }
    assert.equal((await get(`${concrete(path)}?${needed(path)}after=x!`)).status, 400, path)
  }
})
