/** `npm run audit` with the real npm, against a registry on loopback. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readExceptions } from '../../scripts/release/audit.ts'
import { depth } from '../support/depth.ts'
import { freePort } from '../support/free-port.ts'
import { type StubAnswer, startStub } from '../support/stub.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BULK = '/-/npm/v1/security/advisories/bulk'
const ID = 'GHSA-test-test-test'
const FOREVER = '9999-12-31'
const advisory = (severity: string) => ({
  id: 1,
  url: `https://advisories.test/${ID}`,
  title: 'It does what it should not',
  severity,
  vulnerable_versions: '>=0.0.0',
  cwe: [],
  cvss: { score: 0, vectorString: null },
})

let answer: StubAnswer = {}
const registry = await startStub(({ path }) => (path === BULK ? answer : { status: 404, json: {} }))

/** Runs the script; the registry answers with this report about all packages. */
async function audited(t: TestContext, given: StubAnswer, { exceptions = '[]', url = registry.url } = {}) {
  answer = given
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const allowed = join(folder, 'allowed.json')
  writeFileSync(allowed, exceptions)
  const env = { ...process.env, npm_config_registry: url, npm_config_cache: join(folder, 'cache') }
  const child = spawn(process.execPath, ['--import', 'tsx', 'scripts/release/audit.ts', allowed], { cwd: ROOT, env })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      printed += text
    })
  const [code] = await once(child, 'close')
  return { code, printed }
}
const finding = (severity = 'high'): StubAnswer => ({ json: { pino: [advisory(severity)] } })
const exception = (until: string) => JSON.stringify([{ id: ID, reason: 'what is at fault is not called', until }])

test('an audit without findings succeeds', async (t) => {
  const { code, printed } = await audited(t, { json: {} })
  assert.deepEqual([code, printed], [0, 'audited: no advisory that is not allowed\n'])
  assert.ok(registry.heard.some(({ method, path }) => method === 'POST' && path === BULK))
})

for (const severity of depth(['low'], ['low', 'critical']))
  test(`a finding of severity ${severity} fails, with its package and its address`, async (t) => {
    const { code, printed } = await audited(t, finding(severity))
    assert.equal(code, 1)
    assert.match(
      printed,
      new RegExp(`^pino >=0\\.0\\.0: ${severity}: It does what it should not \\(https://advisories\\.test/${ID}\\)\n$`),
    )
  })

test('an informational finding does not fail', async (t) => {
  assert.equal((await audited(t, finding('info'))).code, 0)
})

test('an allowed finding does not fail; another still does', async (t) => {
  const { code, printed } = await audited(t, finding(), { exceptions: exception(FOREVER) })
  assert.deepEqual([code, printed], [0, 'audited: no advisory that is not allowed\n'])
  const other = { ...advisory('high'), id: 2, url: 'https://advisories.test/GHSA-othe-othe-othe' }
  const both = await audited(
    t,
    { json: { pino: [advisory('high')], zod: [other] } },
    { exceptions: exception(FOREVER) },
  )
  assert.equal(both.code, 1)
  assert.match(both.printed, /^zod .*GHSA-othe-othe-othe\)\n$/)
})

test('an expired exception fails, and the message says so', async (t) => {
  const { code, printed } = await audited(t, finding(), { exceptions: exception('2000-01-01') })
  assert.equal(code, 1)
  assert.match(printed, /; allowed until 2000-01-01\n$/)
})

test('an unreachable registry is reported and does not fail the audit', async (t) => {
  const absent = await audited(t, {}, { url: `http://127.0.0.1:${await freePort()}` })
  assert.equal(absent.code, 0)
  assert.match(absent.printed, /^NOT AUDITED: the registry gave no answer: .*ECONNREFUSED/)
  for (const given of depth(['reset'] as const, [{ status: 405 }, { status: 503 }, 'reset'] as const)) {
    const { code, printed } = await audited(t, given)
    assert.equal(code, 0, printed)
    assert.match(printed, /^NOT AUDITED: the registry gave no answer: .+\n$/)
  }
})

test('an exception needs a reason and a last day', () => {
  assert.equal(readExceptions(exception(FOREVER)).length, 1)
  for (const bad of [
    { id: ID, reason: 'r' },
    { id: ID, until: FOREVER },
    { id: ID, reason: 'r', until: 'never' },
  ])
    assert.throws(() => readExceptions(JSON.stringify([bad])), /needs id, reason and until/)
})
