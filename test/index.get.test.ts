import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp, TOKENS } from './support/app.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)

interface Links {
  name: string
  links: Record<string, string>
}

test('GET / 200: JSON with links to routes that answer 200', async () => {
  const answer = await app.get('/')
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type')!, /^application\/json/)
  const { name, links } = answer.json as Links
  assert.equal(name, 'cluster telemetry broker')
  assert.ok(Object.keys(links).length >= 5)
  for (const path of Object.values(links)) assert.equal((await app.get(path)).status, 200, path)
})

test('GET / 200: HTML with the same links if the client prefers it', async () => {
  const { links } = (await app.get('/')).json as Links
  for (const accept of [
    'text/html',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'application/json;q=0.5, text/html',
  ]) {
    const answer = await app.get('/', { headers: { accept } })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.match(answer.text, /^<!doctype html>/)
    // Relative, so that they work behind a proxy that serves the broker below a path.
    const found = [...answer.text.matchAll(/href="([^"]*)"/g)].map(([, href]) => `/${href}`)
    assert.deepEqual(found, Object.values(links))
  }
})

test('GET / 200: JSON for all other clients', async () => {
  for (const accept of [
    '*/*',
    'application/json',
    'application/json, text/html;q=0.9',
    'text/html;q=0',
    'text/plain',
    '',
    'text/*;q=0.1, application/json',
  ]) {
    const { status, headers } = await app.get('/', { headers: { accept } })
    assert.deepEqual(
      [status, headers.get('content-type'), headers.get('vary')],
      [200, 'application/json', 'accept'],
      accept,
    )
  }
})

test('GET / 200: it needs no token and contains no version, which would need one', async () => {
  const [mine, theirs] = [await app.get('/'), await guarded.get('/')]
  assert.equal(theirs.status, 200)
  assert.equal(theirs.text, mine.text)
  assert.doesNotMatch(theirs.text, /\d+\.\d+\.\d+/, 'the version takes a token')
})

test('GET / 200: HEAD has the same length and no body', async () => {
  const [head, get] = [await app.request('HEAD', '/'), await app.get('/')]
  assert.deepEqual([head.status, head.text], [200, ''])
  assert.equal(head.headers.get('content-length'), get.headers.get('content-length'))
})
