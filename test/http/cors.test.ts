/** No web page may read answers, unless CORS_ORIGINS names its origin. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../../lib/config/index.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { refusalOf } from '../support/environment.ts'

const UI = 'https://ui.example'
const OTHER = 'http://localhost:5173'
const EVIL = 'https://evil.example'

const closed = await startApp(TOKENS)
const open = await startApp({ ...TOKENS, CORS_ORIGINS: '*' })
const listed = await startApp({ ...TOKENS, CORS_ORIGINS: ` ${UI} , ${OTHER}` })

/** Each kind of answer: a route, an error, a path without a route, and an answer that may be compressed. */
const PATHS = [
  ['/health', 200],
  ['/pod/info', 401],
  ['/nothing', 404],
  ['/openapi.json', 200],
] as const

async function ask(app: typeof open, path: string, origin?: string) {
  const answer = await app.get(path, {
    headers: origin === undefined ? {} : { origin },
    ...(path === '/openapi.json' ? { token: TOKENS.BROKER_TOKEN_READ } : {}),
  })
  const fields = [...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))
  return {
    status: answer.status,
    origin: answer.headers.get('access-control-allow-origin'),
    vary: answer.headers.get('vary'),
    fields,
  }
}

const preflight = (app: typeof open, origin: string) =>
  app.request('OPTIONS', '/pod/info', {
    headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' },
  })

describe('without CORS_ORIGINS', () => {
  test('no answer may be read by a page of another origin', async () => {
    for (const [path, status] of PATHS)
      assert.deepEqual(await ask(closed, path, UI).then(({ status, fields }) => [status, fields]), [status, []])
  })

  test('a preflight is an empty 404', async () => {
    const answer = await preflight(closed, UI)
    assert.deepEqual([answer.status, answer.text], [404, ''])
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
    assert.equal(answer.headers.get('access-control-allow-methods'), null)
  })
})

describe('CORS_ORIGINS=*', () => {
  test('lets every origin read every answer', async () => {
    for (const [path, status] of PATHS)
      assert.deepEqual(await ask(open, path, EVIL).then(({ status, origin }) => [status, origin]), [status, '*'])
  })

  test('answers a preflight of any origin, for an hour', async () => {
    const answer = await preflight(open, EVIL)
    assert.equal(answer.status, 204)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    assert.equal(answer.headers.get('access-control-max-age'), '3600')
  })
})

describe('CORS_ORIGINS with origins', () => {
  test('lets the named origins read, with `Vary: origin` for caches', async () => {
    for (const [path, status] of PATHS)
      for (const origin of [UI, OTHER]) {
        const answer = await ask(listed, path, origin)
        assert.deepEqual([answer.status, answer.origin], [status, origin], path)
        assert.ok(answer.vary?.split(', ').includes('origin'), `${path}: ${answer.vary}`)
      }
    assert.deepEqual((await ask(listed, '/openapi.json', UI)).vary?.split(', ').sort(), ['accept-encoding', 'origin'])
  })

  test('lets no other origin read', async () => {
    for (const [path, status] of PATHS)
      for (const origin of [EVIL, `${UI}.evil.example`, `${UI}:444`, 'http://ui.example', 'null', undefined]) {
        const answer = await ask(listed, path, origin)
        assert.deepEqual([answer.status, answer.fields], [status, []], `${path} ${origin}`)
        assert.ok(answer.vary?.split(', ').includes('origin'))
      }
  })

  test('answers the preflight of the named origins only', async () => {
    const answer = await preflight(listed, UI)
    assert.deepEqual([answer.status, answer.headers.get('access-control-allow-origin')], [204, UI])
    assert.equal((await preflight(listed, EVIL)).headers.get('access-control-allow-origin'), null)
  })

  test('an invalid origin makes the start fail with the name of the variable', () => {
    for (const value of [
      'ui.example',
      'https://ui.example/',
      'https://ui.example/app',
      `${UI},*`,
      `${UI} ${OTHER}`,
      'null',
      ',',
    ]) {
      const lines = refusalOf(() => loadConfig({ CORS_ORIGINS: value }))
      assert.equal(lines.length, 1, value)
      assert.match(lines[0]!, /^CORS_ORIGINS: expected /)
    }
  })
})
