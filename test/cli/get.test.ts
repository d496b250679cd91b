/** `ctb get`, `ctb status` and lists that are cut, in front of brokers of every mood. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { questionOf } from '../../wrangler-free-deploy/cli/commands/get.ts'
import { brokenJobs, jobsOf } from '../../wrangler-free-deploy/cli/status/jobs.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'
import { inProcess } from './in-process.ts'
import { pathOf, TOKEN } from './support.ts'

let answerOf: (path: string) => StubAnswer = () => ({ json: { items: [{ name: 'a' }] } })
const stub = await startStub(({ path }) => answerOf(path))
const ctb = inProcess(stub.url)

async function withAnswer(
  answer: StubAnswer | ((path: string) => StubAnswer),
  words: readonly string[],
  columns?: number,
) {
  answerOf = typeof answer === 'function' ? answer : () => answer
  stub.heard.length = 0
  return ctb(words, { columns: columns ?? null })
}

const JSON_TEXT = '{"items":[{"name":"a"}]}'

test('the answer of any type is its bytes, on stdout and in a file', async () => {
  for (const [type, text] of [
    ['application/json', JSON_TEXT],
    ['text/plain; version=0.0.4', 'a 1\n'],
    ['application/x-ndjson', '{}\n{}\n'],
  ] as const) {
    const answer = { text, headers: { 'content-type': type } }
    assert.deepEqual(await withAnswer(answer, ['get', '/x']), { code: 0, out: text, err: '' })
    const file = pathOf('answer')
    assert.deepEqual(await withAnswer(answer, ['get', '/x', '--out', file]), { code: 0, out: '', err: '' })
    assert.equal(readFileSync(file, 'utf8'), text)
  }
})

test('path and query reach the broker as they are meant', async () => {
  await withAnswer({ json: {} }, ['get', '/images/sha256%3Aab?limit=1&part=a&x=b%26c%20d'])
  const [heard] = stub.heard
  assert.equal(heard!.path, '/images/sha256:ab')
  assert.deepEqual(heard!.query, { limit: '1', part: 'a', x: 'b&c d' })
  assert.deepEqual(questionOf('/flows?port=80&port=443').query, { port: ['80', '443'] })
  assert.equal(heard!.headers.authorization, `Bearer ${TOKEN}`)
})

test('JSON can be shown as JSON, YAML or by a path; other formats are refused', async () => {
  const json = { text: JSON_TEXT }
  assert.equal((await withAnswer(json, ['get', '/x', '-o', 'json'])).out, JSON_TEXT)
  assert.equal((await withAnswer(json, ['get', '/x', '-o', 'yaml'])).out, 'items:\n  - name: a\n')
  assert.match((await withAnswer(json, ['get', '/x', '-o', 'jsonpath={.items[0].name}'])).out, /^a\n?$/)
  for (const format of ['table', 'csv', 'name', 'xml']) {
    const refused = await withAnswer(json, ['get', '/x', '-o', format])
    assert.deepEqual([refused.code, refused.out, stub.heard.length], [2, '', 0])
    assert.match(refused.err, /^--output: expected /)
  }
})

test('no text leads to another host, and the token follows no redirect', async () => {
  const elsewhere = await startStub(() => ({ json: {} }))
  const host = new URL(elsewhere.url).host
  for (const text of [
    `//${host}/x`,
    `/\\${host}/x`,
    `@${host}/x`,
    elsewhere.url,
    `/x/..//${host}/x`,
    'x',
    '',
    '/x#y',
    '/x y',
    '/%zz',
  ]) {
    const refused = await withAnswer({ json: {} }, ['get', text])
    assert.equal(refused.code, 2, text)
    assert.equal(stub.heard.length, 0)
  }
  for (const text of [`/@${host}/x`, `/..%2f..//${host}`, `/:80/x`]) {
    await withAnswer({ json: {} }, ['get', text])
    assert.equal(stub.heard.length, 1, text)
  }
  const moved = { status: 302, headers: { location: `${elsewhere.url}/` }, json: {} }
  const { code, out } = await withAnswer(moved, ['get', '/x'])
  assert.deepEqual([code, out], [6, ''])
  assert.equal(elsewhere.heard.length, 0)
})

test('a path stays below that of an ingress', async () => {
  const below = inProcess(`${stub.url}/broker`)
  for (const [text, path] of [
    ['/x', '/broker/x'],
    ['/../x', '/broker/x'],
    ['/%2e%2e/x', '/broker/x'],
    ['/a/../../x', '/broker/x'],
  ]) {
    stub.heard.length = 0
    await below(['get', text!])
    assert.equal(stub.heard[0]!.path, path)
  }
})

test('an answer that ends early is 7, and no file of it appears', async () => {
  const file = pathOf('cut')
  const { code, err } = await withAnswer('cut', ['get', '/x', '--out', file])
  assert.equal(code, 7)
  assert.match(err, /^the answer ended early: /)
  assert.ok(!existsSync(file))
})

test('statuses are exit codes, with the words of the broker as text or as JSON', async () => {
  const plain = { 'content-type': 'text/plain' }
  const cases: readonly [answer: StubAnswer, code: number, says: string][] = [
    [{ status: 400, text: 'limit: expected a number', headers: plain }, 2, 'limit: expected a number\n'],
    [{ status: 404, json: { error: 'workload_not_found', message: 'nothing is known' } }, 3, 'nothing is known\n'],
    [{ status: 404, json: { error: 'x' } }, 3, `${stub.url} answered 404\n`],
    [{ status: 404, text: '{', headers: {} }, 3, `${stub.url} answered 404\n`],
    [{ status: 409, text: 'partial', headers: plain }, 5, 'partial\n'],
  ]
  for (const [answer, code, says] of cases)
    assert.deepEqual(await withAnswer(answer, ['get', '/x']), { code, out: '', err: says })
})

test('on a terminal text stays text, also where its characters arrive in parts', async () => {
  const text = 'é\u001b[2J \u{1f600}\u202e\n'
  const { out } = await withAnswer({ text, headers: { 'content-type': 'text/plain' } }, ['get', '/x'], 80)
  assert.equal(out, 'é [2J \u{1f600} \n')
})

const VERSION = { broker: '1.2.3', chart: '1.2.3', telemetry_enabled: true, latest: null }

test('status: what cannot be read is unknown and needs a look', async () => {
  const { code, out, err } = await withAnswer(
    (path) =>
      path === '/version'
        ? { json: { ...VERSION, checked_at: '2026-01-31T09:00:00', update_available: true } }
        : { status: 404, text: 'no such route', headers: { 'content-type': 'text/plain' } },
    ['status', '-o', 'csv', '--no-headers', '--utc'],
  )
  assert.equal(code, 0)
  assert.deepEqual(out.trim().split('\r\n'), [
    'broker,1.2.3,2026-01-31T09:00:00Z,true,"chart 1.2.3, an update is available"',
    ...['cluster', 'nodes', 'flows', 'edges', 'coverage', 'jobs'].map((what) => `${what},unknown,,true,no such route`),
  ])
  assert.equal(err.match(/^needs a look: /gm)?.length, 7)
})

test('status: edges that are no longer counted need a look', async () => {
  const edges = { items: [], nextAfter: null, asOf: '2026-01-31T09:00:00', observedSince: null, unstamped: 0 }
  const { out, err } = await withAnswer(
    (path) =>
      path === '/version'
        ? { json: { ...VERSION, checked_at: null, update_available: false } }
        : path === '/flows/edges'
          ? { json: edges }
          : { status: 404, text: 'no such route', headers: { 'content-type': 'text/plain' } },
    ['status', '-o', 'csv', '--no-headers', '--utc'],
  )
  assert.match(out, /^edges,none,2026-01-31T09:00:00Z,true,"counted until then, not since, none is held"\r$/m)
  assert.match(err, /^needs a look: edges: /m)
})

test('jobs are read from the text of Prometheus', () => {
  const name = 'broker_job_last_success_timestamp_seconds'
  const text = [
    `# HELP ${name} Unix time`,
    `# TYPE ${name} gauge`,
    `${name}{job="flow-edges"} 1769850000.5`,
    `${name}{job="audit-retention"} 1.76985e9`,
    `${name}{job="never"} 0`,
    `${name}{job="broken"} NaN`,
    `broker_job_duration_seconds{job="other"} 3`,
    '',
  ].join('\n')
  assert.deepEqual(
    jobsOf(text).map(({ name: job, lastSuccess }) => [job, lastSuccess.toISOString()]),
    [
      ['audit-retention', '2026-01-31T09:00:00.000Z'],
      ['flow-edges', '2026-01-31T09:00:00.500Z'],
    ],
  )
  assert.deepEqual(jobsOf(''), [])
})

test('usage: a list as long as the broker makes any is told to be cut', async () => {
  const containers = Array.from({ length: 5_000 }, (_, n) => ({
    namespace: 'shop',
    pod_name: `web-${n}`,
    container: 'web',
  }))
  const words = ['usage', '-n', 'shop', '-o', 'name']
  const cut = await withAnswer({ json: { containers, nodes: [] } }, words)
  assert.match(cut.err, /^the broker lists 5000 containers at most/)
  assert.equal((await withAnswer({ json: { containers: containers.slice(1), nodes: [] } }, words)).err, '')
})

test('a job that only failed is told, since it has no time', () => {
  const text = [
    'broker_job_last_success_timestamp_seconds{job="flow-edges"} 1769850000.5',
    'broker_job_passes_total{job="flow-edges",outcome="failed"} 3',
    'broker_job_passes_total{job="profile-snapshots",outcome="failed"} 2',
    'broker_job_passes_total{job="late-resolve",outcome="done"} 2',
    'broker_job_passes_total{job="stale-sweep",outcome="failed"} 0',
    '',
  ].join('\n')
  assert.deepEqual(brokenJobs(text), ['profile-snapshots'])
})
