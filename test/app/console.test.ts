/** The console as the broker serves it. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { type ConsoleFiles, openConsole } from '../../lib/console/files.ts'
import { declaredRoutes } from '../../lib/http/access.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { firstSight } from '../../lib/process/first-sight.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { get as fetchFrom, startBroker } from '../support/broker.ts'
import { consoleFolder, FILES, openFolder, page, SCRIPT, SECURITY } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { logTo } from '../support/log.ts'

const BUILD = fileURLToPath(new URL('../../dist/console', import.meta.url))
const ASSET = '/console/assets/index-AbC_12-x.js'
const DEEP = '/console/workload/shop/Deployment/api'
const ID = 'request-of-test'

type Links = Record<string, string>

const app = await startApp({ CORS_ORIGINS: '*' })
const guarded = await startApp(TOKENS)
const served = createApp(app.deps, routes, openFolder('none'))
const servedGuarded = createApp(guarded.deps, routes, openFolder('browser'))

const get = async (path: string, headers: Record<string, string> = {}, method = 'GET', on = served) =>
  on.request(path, { method, headers: { 'x-request-id': ID, ...headers } })

/** All headers but those that depend on the content. */
const fixedHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => !['etag', 'content-length'].includes(name)))
const always = { ...SECURITY, 'x-request-id': ID }

test('the page has exactly these headers', async () => {
  const answer = await get('/console/', { origin: 'https://other.example' })
  const text = await answer.text()
  assert.deepEqual([answer.status, text], [200, page('none')])
  assert.deepEqual(fixedHeaders(answer), {
    ...always,
    'cache-control': 'no-cache',
    'content-type': 'text/html; charset=utf-8',
    vary: 'accept-encoding',
  })
  assert.equal(answer.headers.get('content-length'), String(text.length))
})

test('an asset has exactly these headers, and caches keep it', async () => {
  const answer = await get(ASSET)
  assert.deepEqual([answer.status, await answer.text()], [200, SCRIPT])
  assert.deepEqual(fixedHeaders(answer), {
    ...always,
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
    vary: 'accept-encoding',
  })
})

test('every file has its content type and the headers of security, also the script of a worker', async () => {
  const types = {
    'icon.svg': 'image/svg+xml',
    'index.html': 'text/html; charset=utf-8',
    'assets/map-worker-Zz09.js': 'text/javascript; charset=utf-8',
    'assets/index-00ff.css': 'text/css; charset=utf-8',
  }
  for (const [path, type] of Object.entries(types)) {
    const answer = await get(`/console/${path}`)
    assert.equal(answer.headers.get('content-type'), type)
    for (const [name, value] of Object.entries(SECURITY)) assert.equal(answer.headers.get(name), value, path)
    assert.equal(await answer.text(), path === 'index.html' ? page('none') : FILES[path])
  }
})

test('views are the page, also those of names with dots', async () => {
  for (const path of [DEEP, '/console/flows?namespace=shop', '/console/nodes/ip-10-0-0-1.ec2.internal', '/console/x/'])
    assert.deepEqual(await get(path).then(async (one) => [one.status, await one.text()]), [200, page('none')], path)
})

test('the path without a slash is redirected, with its query', async () => {
  for (const [path, location] of [
    ['/console', '/console/'],
    ['/console?since=1h', '/console/?since=1h'],
  ] as const) {
    const answer = await get(path)
    assert.deepEqual([answer.status, await answer.text()], [308, ''])
    assert.deepEqual(Object.fromEntries(answer.headers), {
      ...always,
      'cache-control': 'no-cache',
      'content-length': '0',
      location,
    })
  }
})

test('a file that is not there is an empty 404 with the headers of security', async () => {
  for (const path of ['/console/assets/index-old.js', '/console/assets/', '/console/favicon.ico', '/console/.env']) {
    const answer = await get(path)
    assert.deepEqual([answer.status, await answer.text()], [404, ''], path)
    assert.deepEqual(
      Object.fromEntries(answer.headers),
      { ...always, 'cache-control': 'no-cache', 'content-length': '0' },
      path,
    )
  }
})

test('304 where the client has the file, in the coding that it accepts', async () => {
  for (const path of ['/console/', DEEP, ASSET]) {
    for (const coding of ['identity', 'gzip']) {
      const headers = { 'accept-encoding': coding }
      const first = await get(path, headers)
      const etag = first.headers.get('etag')!
      assert.match(etag, /^"[\w-]{43}(-gzip)?"$/)
      for (const sent of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
        const again = await get(path, { ...headers, 'if-none-match': sent })
        assert.deepEqual([again.status, await again.text()], [304, ''])
        assert.equal(again.headers.get('etag'), etag)
        assert.equal(again.headers.get('cache-control'), first.headers.get('cache-control'))
        assert.equal(again.headers.get('content-security-policy'), SECURITY['content-security-policy'])
      }
      assert.equal((await get(path, { ...headers, 'if-none-match': '"other"' })).status, 200)
    }
  }
})

test('gzip if the client accepts it and it is smaller, with another strong ETag', async () => {
  const packed = await get(ASSET, { 'accept-encoding': 'br, gzip' })
  const bytes = Buffer.from(await packed.arrayBuffer())
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  assert.equal(packed.headers.get('content-length'), String(bytes.length))
  assert.ok(bytes.length < SCRIPT.length / 4)
  assert.equal(gunzipSync(bytes).toString(), SCRIPT)
  const plain = await get(ASSET, { 'accept-encoding': 'br' })
  assert.notEqual(plain.headers.get('etag'), packed.headers.get('etag'))
  assert.equal(plain.headers.get('content-encoding'), null)
  const short = await get('/console/assets/index-00ff.css', { 'accept-encoding': 'gzip' })
  assert.deepEqual([short.headers.get('content-encoding'), await short.text()], [null, 'p{margin:0}'])
})

test('HEAD has the status and the headers of GET, and no body', async () => {
  for (const path of ['/console', '/console/', DEEP, ASSET, '/console/assets/none.js']) {
    const [head, whole] = [await get(path, {}, 'HEAD'), await get(path)]
    assert.deepEqual([head.status, await head.text()], [whole.status, ''], path)
    assert.deepEqual([...head.headers], [...whole.headers], path)
  }
})

test('other methods have no route', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
    assert.deepEqual(await get('/console/', {}, method).then(async (one) => [one.status, await one.text()]), [404, ''])
})

test('paths that leave the folder, plain or encoded, return only the page or a 404', async () => {
  const { server } = await listen(served.fetch, [{ host: '127.0.0.1', port: 0 }])
  after(() => server.close())
  const { port } = server.address() as AddressInfo
  const up = ['..', '%2e%2e', '.%2e', '..%2f..', '..%5c', '%252e%252e', '..;', '%00', '....//']
  for (const one of up)
    for (const path of [
      `/console/${one}/package.json`,
      `/console/assets/${one}/${one}/${one}/package.json`,
      `/console/${one}/${one}/${one}/etc/passwd`,
      `/console//${one}//etc/passwd`,
      `/console/assets/${one}`,
      `/console${one}`,
    ]) {
      const { status, text } = await fetchFrom(`http://127.0.0.1:${port}${path}`)
      assert.ok(text === '' ? status === 404 : status === 200 && text === page('none'), `${path}: ${status} ${text}`)
    }
})

test('the log and the metrics have the pattern, not the path', async () => {
  app.logged.length = 0
  await get('/console/workload/secret-namespace/Deployment/api')
  const [line] = app.logged.filter(({ msg }) => msg === 'request')
  assert.deepEqual([line!.route, line!.status, line!.bytes], ['/console/*', 200, page('none').length])
  assert.ok(!JSON.stringify(app.logged).includes('secret-namespace'))
})

test('with tokens the files are public, and the data is not', async () => {
  for (const path of ['/console/', DEEP, ASSET])
    for (const authorization of ['', 'Bearer of-nobody'])
      assert.equal((await get(path, { authorization }, 'GET', servedGuarded)).status, 200)
  assert.match(await (await get('/console/', {}, 'GET', servedGuarded)).text(), /content="browser"/)
  assert.equal((await get('/pod/info', {}, 'GET', servedGuarded)).status, 401)
  assert.equal((await get('/flows', {}, 'GET', servedGuarded)).status, 401)
})

test('no answer sets a cookie or lets another origin read it, whatever CORS_ORIGINS is', async () => {
  for (const path of ['/console', '/console/', ASSET, '/console/assets/none.js']) {
    const names = [...(await get(path, { origin: 'https://other.example' })).headers.keys()]
    assert.deepEqual(
      names.filter((name) => name.startsWith('access-control-') || name === 'set-cookie'),
      [],
    )
  }
})

test('while the broker stops, answers end their connection', async () => {
  const stopping = createApp({ ...app.deps, draining: () => true }, routes, openFolder('none'))
  for (const path of ['/console', '/console/', '/console/assets/none.js'])
    assert.equal((await stopping.request(path)).headers.get('connection'), 'close')
})

test('without the console all of its paths are the usual 404', async () => {
  for (const path of ['/console', '/console/', ASSET, DEEP]) {
    const answer = await app.app.request(path)
    assert.deepEqual([answer.status, await answer.text(), answer.headers.get('content-length')], [404, '', '0'])
    assert.equal(answer.headers.get('content-security-policy'), null)
  }
})

test('the page of links links to the console only if it is served', async () => {
  const links = async (on: typeof served) => ((await (await on.request('/')).json()) as { links: Links }).links
  assert.deepEqual(await links(served), { console: '/console/', ...(await links(app.app)) })
  assert.equal((await links(app.app)).console, undefined)
  const html = async (on: typeof served) => (await get('/', { accept: 'text/html' }, 'GET', on)).text()
  assert.match(await html(served), /all links but the first three need one[\s\S]*<a href="console\/">/)
  assert.match(await html(app.app), /all links but the first two need one/)
})

test('its route needs no token and is not in the OpenAPI document', async () => {
  assert.equal(declaredRoutes(served.routes).get('GET /console/*'), 'open')
  const { paths } = (await (await served.request('/openapi.json')).json()) as { paths: object }
  assert.deepEqual(
    Object.keys(paths).filter((path) => path.includes('console')),
    [],
  )
})

describe('CONSOLE', () => {
  const enabled = (env: NodeJS.ProcessEnv) => loadConfig(env).consoleEnabled

  test('is on except in production, unless set', () => {
    const production = { NODE_ENV: 'production', DATABASE_URL: 'postgres://u@h/db' }
    assert.deepEqual([enabled({}), enabled({ NODE_ENV: 'test' }), enabled(production)], [true, true, false])
    assert.deepEqual([enabled({ CONSOLE: 'off' }), enabled({ ...production, CONSOLE: 'true' })], [false, true])
  })
})

describe('the folder of the build', () => {
  const warned: unknown[] = []
  const log = logTo((level, message, fields) => warned.push([level, message, fields]))
  const open = (folder: string): ConsoleFiles | null => openConsole({ tokenSource: 'browser', folder, log })

  test('is missing, lacks the page or its meta tag: a warning, and no console', () => {
    for (const [folder, reason] of [
      ['/nonexistent/console', 'ENOENT'],
      [consoleFolder({ 'assets/x.js': '' }), 'index.html is missing'],
      [consoleFolder({ 'index.html': '<!doctype html>' }), 'index.html lacks its meta tag console-token'],
    ] as const) {
      assert.equal(open(folder), null)
      const text = 'CONSOLE is on, but no console was built: see `npm run build`'
      assert.deepEqual(warned.splice(0), [['warn', text, { folder, reason }]])
    }
  })

  test('is read once: a file that changes or comes later is not served, nor is a link out of it', async () => {
    const folder = consoleFolder()
    symlinkSync('/etc/passwd', join(folder, 'assets', 'passwd.txt'))
    const files = open(folder)!
    writeFileSync(join(folder, 'assets', 'later.js'), 'later')
    writeFileSync(join(folder, 'index.html'), 'changed')
    const own = createApp(app.deps, routes, files)
    assert.equal(await (await own.request('/console/')).text(), page('browser'))
    for (const name of ['later.js', 'passwd.txt'])
      assert.equal((await own.request(`/console/assets/${name}`)).status, 404)
    assert.deepEqual([...files.keys()].sort(), Object.keys(FILES).sort())
  })

  test('each source of the token is written into the page', () => {
    for (const source of ['browser', 'proxy', 'none'] as const)
      assert.equal(openFolder(source)!.get('index.html')!.plain.toString(), page(source))
  })
})

const isBuilt = existsSync(join(BUILD, 'index.html'))

test('the output of `npm run build` is served completely', { skip: !isBuilt && 'no build' }, async () => {
  const files = openFolder('none', BUILD)
  const own = createApp(app.deps, routes, files)
  const html = await (await own.request('/console/')).text()
  assert.match(html, /<meta name="console-token" content="none"/)
  const found = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path!)
  assert.ok(found.some((path) => path.startsWith('/console/assets/')))
  for (const path of found) {
    const answer = await own.request(path)
    assert.equal(answer.status, 200, path)
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), readFileSync(join(BUILD, path.slice('/console/'.length))))
    assert.doesNotMatch(answer.headers.get('content-type')!, /octet-stream/, path)
  }
  // The policy of the page allows neither.
  assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/)
  assert.ok(readdirSync(join(BUILD, 'assets')).every((name) => /-[\w-]{8}\.\w+$/.test(name)))
})

describe('the process', { timeout: 600_000 }, () => {
  test('serves the build of the checkout, or warns that there is none, and says where', async () => {
    const database = await createTestDatabase()
    after(() => database.drop())
    const broker = await startBroker({ databaseUrl: database.url, env: { ...TOKENS, CONSOLE: 'true' } })
    const line = broker.log.find(({ msg }) => msg === 'listening')!
    const { status, text } = await fetchFrom(`${broker.url}/console/`)
    const warnings = broker.log.filter(({ msg }) => String(msg).startsWith('CONSOLE is on'))
    if (isBuilt) {
      assert.equal(line.console, `${broker.url}/console/`)
      assert.equal(status, 200)
      assert.match(text, /content="browser"/)
    } else assert.deepEqual([line.console, status, text], [undefined, 404, ''])
    assert.equal(warnings.length, isBuilt ? 0 : 1)
    await broker.stop()
  })

  test('does not serve it with CONSOLE=false', async () => {
    const database = await createTestDatabase()
    after(() => database.drop())
    const broker = await startBroker({ databaseUrl: database.url, env: { CONSOLE: 'false' } })
    assert.equal(broker.log.find(({ msg }) => msg === 'listening')!.console, undefined)
    assert.equal((await fetchFrom(`${broker.url}/console/`)).status, 404)
    await broker.stop()
  })
})

test('a start on a terminal shows the address of the console below that of the broker', () => {
  const given = { api: 'http://[::]:9090', isLoopbackOnly: true, hasTokens: false, dataDir: null }
  const lines = firstSight({ ...given, hasConsole: true }).split('\n')
  assert.equal(lines[1], '  Console http://localhost:9090/console/')
  assert.ok(!firstSight({ ...given, hasConsole: false }).includes('Console'))
})
