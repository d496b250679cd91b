/**
 * Checks that hold for every route. Access is tested here. Answers are found by the titles of tests, written literally
 * in a `test(...)` call: `<METHOD> <path with {param}> <status>: <what>`.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { routes } from '../handlers/router.ts'
import { loadConfig } from '../lib/config/index.ts'
import { declaredRoutes } from '../lib/http/access.ts'
import { createTokens } from '../lib/http/tokens.ts'
import type { Scope } from '../lib/openapi/declare.ts'
import { docOf } from '../lib/openapi/declare.ts'
import { startApp, TOKENS } from './support/app.ts'
import { assertEach } from './support/assert-each.ts'
import { assertForbidden, assertUnauthorized } from './support/routes.ts'

const app = await startApp(TOKENS)

const MAX_HANDLER_LINES = 120
const root = fileURLToPath(new URL('..', import.meta.url))

/** Source files below a folder, relative to the root, with `/` between names. */
function sources(folder: string): string[] {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return sources(path)
    return entry.name.endsWith('.ts') ? [path] : []
  })
}
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** The files that a file imports by a relative path, relative to the root. */
function imports(path: string): string[] {
  const specifiers = read(path).matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)['"](\.{1,2}\/[^'"]+)['"]/g)
  return [...specifiers].map(([, specifier]) =>
    normalize(join(dirname(path), specifier!))
      .split(sep)
      .join('/'),
  )
}

const handlers = sources('handlers').filter((path) => path !== 'handlers/router.ts')
const titles = new Set(
  sources('test')
    .filter((path) => path.endsWith('.test.ts'))
    .flatMap((path) => [...read(path).matchAll(/\btest\(\s*['"`]([A-Z]+ \/\S* \d{3}): /g)].map(([, title]) => title!)),
)
const scopes = declaredRoutes(routes.flatMap((one) => one.routes))
/** `GET /pod/name/:name` as titles write it. */
const titled = (name: string) => name.replace(/:(\w+)(\{[^}]*\})?\??/g, '{$1}')

const { authenticate } = createTokens(loadConfig(TOKENS))

/** Fails for a file that imports one whose path matches. */
const assertImportsNone = (of: RegExp) => (path: string) =>
  assert.deepEqual(
    imports(path).filter((one) => of.test(one)),
    [],
  )

/** The files of `routes`, in its order. */
function routedFiles(): string[] {
  const source = read('handlers/router.ts')
  const files = new Map([...source.matchAll(/import (\w+) from '\.\/(.+)'/g)].map(([, name, file]) => [name!, file!]))
  const [, listed] = source.split('routes = ')
  return [...listed!.matchAll(/\w+/g)].map(([name]) => `handlers/${files.get(name)}`)
}

test('every handler is one route, named after its file and listed by the router', () => {
  const routed = routedFiles()
  assert.equal(routed.length, routes.length)
  return assertEach(handlers, (path) => {
    const handler = routes[routed.indexOf(path)]
    assert.ok(handler, 'not in handlers/router.ts')
    const names = [...declaredRoutes(handler.routes).keys()]
    assert.equal(names.length, 1)
    assert.ok(path.endsWith(`.${names[0]!.split(' ')[0]!.toLowerCase()}.ts`), `it is ${names[0]}`)
  })
})

test(`every handler has at most ${MAX_HANDLER_LINES} lines`, () =>
  assertEach(handlers, (path) => {
    const lines = read(path).trimEnd().split('\n').length
    assert.ok(lines <= MAX_HANDLER_LINES, `${lines} lines`)
  }))

test('every handler has its tests in the file of the same name', () =>
  assertEach(handlers, (path) => {
    const testPath = path.replace(/^handlers\//, 'test/').replace(/\.ts$/, '.test.ts')
    assert.ok(existsSync(join(root, testPath)), `${testPath} is missing`)
  }))

test('no handler imports another', () => assertEach(handlers, assertImportsNone(/^handlers\//)))

test('lib imports neither handlers nor jobs', () =>
  assertEach(
    sources('lib').filter((one) => one !== 'lib/server.ts'),
    assertImportsNone(/^(handlers|jobs)\//),
  ))

test('lib imports no program that is deployed beside the broker', () =>
  assertEach(sources('lib'), assertImportsNone(/^wrangler-free-deploy\//)))

/** Every file that these import, directly or through others. */
function needs(starts: readonly string[]): Set<string> {
  const found = new Set<string>()
  const follow = (path: string) => {
    if (found.has(path)) return
    found.add(path)
    for (const one of imports(path).filter((one) => one.endsWith('.ts'))) follow(one)
  }
  for (const start of starts) follow(start)
  return found
}

test('the edge proxy imports nothing of the routes, the jobs and the database', () => {
  const found = [...needs(sources('wrangler-free-deploy/edge'))]
  assert.deepEqual(
    found.filter((one) => /^(handlers|jobs|sql|lib\/(db|traffic|audit|pods|images))\//.test(one)),
    [],
  )
  assert.ok(found.includes('lib/http/server/listen.ts'))
})

test('the command line is bundled without the broker, of which it knows types and a few texts', () =>
  assertEach(sources('wrangler-free-deploy/cli'), (path) => {
    const bundled = [...read(path).matchAll(/^import (?!type\b)[^'"]*['"](\.[^'"]+)['"]/gm)]
    assert.deepEqual(
      bundled
        .map(([, specifier]) => normalize(join(dirname(path), specifier!)))
        .filter((one) => !/^wrangler-free-deploy\/cli\/|^lib\/(text\/one-line|version)\.ts$/.test(one)),
      [],
    )
  }))

/** The first import cycle, including imports of types; null if there is none. */
function circle(next: (path: string) => readonly string[], starts: readonly string[]): string[] | null {
  const done = new Set<string>()
  const follow = (path: string, trail: readonly string[]): string[] | null => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path]
    if (done.has(path)) return null
    for (const one of next(path)) {
      const found = follow(one, [...trail, path])
      if (found) return found
    }
    done.add(path)
    return null
  }
  for (const start of starts) {
    const found = follow(start, [])
    if (found) return found
  }
  return null
}

test('no file imports itself through others, not even for a type', () => {
  const next = (path: string) => imports(path).filter((one) => one.endsWith('.ts'))
  const found = circle(next, ['lib', 'handlers', 'jobs', 'sql', 'wrangler-free-deploy'].flatMap(sources))
  assert.equal(found?.join(' -> '), undefined)
})

test('every route has a test for 200', () =>
  assertEach([...scopes.keys()].map(titled), (name) => {
    assert.ok(titles.has(`${name} 200`), `no test is titled '${name} 200: ...'`)
  }))

const VERBS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY']
const NOBODY = [
  undefined,
  'Bearer unknown-token-of-nobody',
  'Bearer ',
  `Basic ${TOKENS.BROKER_TOKEN_READ}`,
  TOKENS.BROKER_TOKEN_INGEST,
]
const patterns = [...scopes].map(([name, scope]) => {
  const [verb, path] = name.split(' ') as [string, string]
  return { verb, scope, path, matches: new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`) }
})
/** The scope that a request needs; null if there is no such route. */
const scopeOf = (verb: string, path: string): Scope | null =>
  patterns.find((one) => one.verb === (verb === 'HEAD' ? 'GET' : verb) && one.matches.test(path))?.scope ?? null

const ask = async (verb: string, path: string, authorization?: string) => {
  const answer = await app.app.request(path, {
    method: verb,
    headers: authorization === undefined ? {} : { authorization },
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text(), json: undefined }
}

const CALLERS = [...NOBODY, ...Object.values(TOKENS).map((token) => `Bearer ${token}`)]
const FEW_CALLERS = [undefined, `Bearer ${TOKENS.BROKER_TOKEN_READ}`, `Bearer ${TOKENS.BROKER_TOKEN_INGEST}`]

async function assertTurnsAway(verb: string, path: string, callers = CALLERS): Promise<void> {
  const [name] = path.split('?')
  const what = `${verb} ${path}`
  const scope = scopeOf(verb, name!)
  for (const authorization of callers) {
    const answer = await ask(verb, path, authorization)
    const granted = authorization === undefined ? null : authenticate(authorization)
    if (scope === null) {
      assert.deepEqual([answer.status, answer.text, answer.headers.get('www-authenticate')], [404, '', null], what)
    } else if (scope === 'open' || granted?.has(scope)) {
      assert.ok(![401, 403].includes(answer.status), `${what} ${answer.status}`)
      assert.ok(answer.status !== 404 || answer.text !== '' || verb === 'HEAD', `${what} is no route`)
    } else if (granted) {
      assert.equal(answer.status, 403, what)
      if (verb !== 'HEAD') assertForbidden(answer, scope)
    } else {
      assert.equal(answer.status, 401, what)
      if (verb !== 'HEAD') assertUnauthorized(answer)
    }
  }
}

test('every verb of every path requires the scope of its route from every caller, and is 404 without a route', () =>
  assertEach(new Set(patterns.map(({ path }) => path)), async (path) => {
    const concrete = path.replace(/:\w+/g, 'x')
    for (const verb of VERBS) {
      await assertTurnsAway(verb, concrete)
      // The token is checked before the rest of the request.
      const wrong = `${path.replace(/:\w+/g, '%00')}?limit=x&include_dead=x&at=x&verdict=x`
      for (const one of [`${concrete}/`, `${concrete}/x`, wrong]) await assertTurnsAway(verb, one, FEW_CALLERS)
    }
  }))

test('a path without a route is 404 for every caller, before the token is checked', async () => {
  for (const path of [
    '/pod',
    '/pods/x',
    '/livez',
    '/readyz',
    '/pod/spec/x',
    '/SVC/info',
    '//pod/info',
    '/pod//info',
    '/pod%2Finfo',
  ])
    for (const verb of VERBS) {
      assert.equal(scopeOf(verb, path), null, path)
      await assertTurnsAway(verb, path)
    }
})

test('every route documents its answers', () => {
  const silent = routes.filter((one) => !docOf(one)).flatMap((one) => [...declaredRoutes(one.routes).keys()])
  assert.deepEqual(silent, [], 'give them route({ summary, answer })')
})

test('titles name routes that exist', () => {
  const known = new Set([...scopes.keys()].map(titled))
  for (const title of titles) assert.ok(known.has(title.replace(/ \d+$/, '')), title)
})

test('the checks find what they look for', () => {
  assert.ok(handlers.length >= 16)
  assert.ok(imports('handlers/router.ts').includes('handlers/pod/spec.post.ts'))
  assert.ok(imports('lib/server.ts').includes('handlers/router.ts'))
  const knots: Record<string, string[]> = { a: ['b', 'c'], b: ['d'], c: ['d', 'e'], d: [], e: ['f'], f: ['c'] }
  assert.deepEqual(
    circle((name) => knots[name]!, ['b', 'a']),
    ['c', 'e', 'f', 'c'],
  )
  assert.equal(
    circle((name) => knots[name]!, ['b', 'd']),
    null,
  )
  assert.ok(titles.has('GET /pod/info 200'))
  assert.equal(titled('GET /a/:b/c/:d{[0-9]+}'), 'GET /a/{b}/c/{d}')
  assert.deepEqual(
    [
      scopeOf('HEAD', '/pod/name/x'),
      scopeOf('GET', '/pod/traffic/batch'),
      scopeOf('POST', '/pod/traffic/batch'),
      scopeOf('GET', '/health'),
    ],
    ['read', 'read', 'ingest', 'open'],
  )
})
