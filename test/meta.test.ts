/**
 * What every route must have. Tests are found by their titles: `<METHOD> <path with {param}> <status>: <what>`, written out in a
 * `test(...)` call.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { routes } from '../handlers/router.ts'
import { loadConfig } from '../lib/config.ts'
import { declaredRoutes } from '../lib/http/access.ts'
import { docOf } from '../lib/http/declared.ts'
import { createTokens } from '../lib/http/tokens.ts'
import { TOKENS } from './support/app.ts'

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
const tokensWithout = (scope: string) =>
  Object.values(TOKENS).filter((token) => ![...authenticate(`Bearer ${token}`)!].some((s) => s === scope))

for (const path of handlers) {
  const testPath = path.replace(/^handlers\//, 'test/').replace(/\.ts$/, '.test.ts')

  test(`${path} is one route, named after its file and listed by the router`, async () => {
    const { default: handler } = await import(new URL(`../${path}`, import.meta.url).href)
    assert.ok(routes.includes(handler), 'not in handlers/router.ts')
    const names = [...declaredRoutes(handler.routes).keys()]
    assert.equal(names.length, 1)
    assert.ok(path.endsWith(`.${names[0]!.split(' ')[0]!.toLowerCase()}.ts`), `${names[0]} in ${path}`)
  })

  test(`${path} has at most ${MAX_HANDLER_LINES} lines`, () => {
    assert.ok(read(path).trimEnd().split('\n').length <= MAX_HANDLER_LINES)
  })

  test(`${path} has its tests in ${testPath}`, () => {
    assert.ok(existsSync(join(root, testPath)))
  })

  test(`${path} imports no other handler`, () => {
    assert.deepEqual(
      imports(path).filter((one) => one.startsWith('handlers/')),
      [],
    )
  })
}

for (const path of sources('lib').filter((one) => one !== 'lib/server.ts')) {
  test(`${path} knows neither handlers nor jobs`, () => {
    assert.deepEqual(
      imports(path).filter((one) => /^(handlers|jobs)\//.test(one)),
      [],
    )
  })
}

for (const [name, scope] of scopes) {
  const expected = [200, ...(scope === 'open' ? [] : [401]), ...(scope !== 'open' && tokensWithout(scope).length > 0 ? [403] : [])]
  for (const status of expected) {
    test(`${titled(name)} has a test for ${status}`, () => {
      assert.ok(titles.has(`${titled(name)} ${status}`), `no test is titled '${titled(name)} ${status}: ...'`)
    })
  }
}

test('every route says what it answers', () => {
  const silent = routes.filter((one) => !docOf(one)).flatMap((one) => [...declaredRoutes(one.routes).keys()])
  assert.deepEqual(silent, [], 'give them route({ summary, answer })')
})

test('titles name routes that exist', () => {
  const known = new Set([...scopes.keys()].map(titled))
  for (const title of titles) assert.ok(known.has(title.replace(/ \d+$/, '')), title)
})

test('the checks see what they look for', () => {
  assert.ok(handlers.length >= 16)
  assert.ok(imports('handlers/router.ts').includes('handlers/pod/spec.post.ts'))
  assert.ok(imports('lib/server.ts').includes('handlers/router.ts'))
  assert.ok(titles.has('GET /pod/info 401'))
  assert.equal(titled('GET /a/:b/c/:d{[0-9]+}'), 'GET /a/{b}/c/{d}')
  assert.ok(tokensWithout('ingest').length > 0 && tokensWithout('supplychain').length > 0)
})
