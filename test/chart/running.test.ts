/** The command lines of the rendered manifests, run like containers on a live database. Needs `npm run build`. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { jobs } from '../../jobs/index.ts'
import { VERSION } from '../../lib/version.ts'
import { createTestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { administer } from '../support/server.ts'
import { startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { container, environment, type Manifest, object, ofKind, skip as withoutHelm } from './rendered.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const skip = withoutHelm || (existsSync(`${ROOT}/dist/jobs/run.js`) ? false : 'needs `npm run build`')
const [database, releases] = skip
  ? []
  : await Promise.all([
      createTestDatabase(),
      startStub(() => ({ json: { latest: { chart: '9.9.9', broker: '9.9.9' } } })),
    ])

/**
 * The environment of a container of the manifest, with made-up tokens, the database of this file, and no requests
 * outside this machine.
 */
function lived(manifest: Manifest, changes: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const given = Object.entries(environment(manifest)).filter(([name]) => !/^(PG|DATABASE_)/.test(name))
  const textOf = (name: string, value: string | { secretKeyRef: { key: string } }) => {
    if (typeof value !== 'string') return tokenOf(value.secretKeyRef.key)
    return /TOKEN.*_FILE$/.test(name) ? tokenFile(basename(value.split(',')[0]!)) : value
  }
  const texts = given.map(([name, value]) => [name, textOf(name, value)])
  const { PATH } = process.env
  return {
    PATH,
    ...Object.fromEntries(texts),
    DATABASE_URL: database!.url,
    TELEMETRY_ENDPOINT: releases!.url,
    ...changes,
  }
}
const tokenOf = (key: string) => `token-for-${key}-of-tests`
const folder = mkdtempSync(join(tmpdir(), 'chart-running-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A token file as the kubelet would mount it. */
function tokenFile(key: string): string {
  const path = join(folder, key)
  writeFileSync(path, tokenOf(key))
  return path
}

/** Starts the only container of a manifest as a process. */
function start(t: TestContext, manifest: Manifest, changes: NodeJS.ProcessEnv = {}) {
  const [program, ...args] = [...container(manifest).command, ...container(manifest).args] as string[]
  const child: ChildProcess = spawn(program!, args, {
    cwd: ROOT,
    env: lived(manifest, changes),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (bytes) => {
      printed += bytes
    })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.after(() => child.kill('SIGKILL'))
  const lines = (): Record<string, unknown>[] =>
    printed
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line))
  return { child, ended, lines, printed: () => printed }
}

for (const { name } of jobs) {
  test(`the CronJob of ${name} runs one pass and exits with 0`, { skip }, async (t) => {
    const manifest = object('jobs-external-database', 'CronJob', name)
    const { ended, lines, printed } = start(t, manifest)
    assert.equal(await ended, 0, printed())
    const [pass] = lines()
    assert.deepEqual([lines().length, pass!.job, pass!.outcome, pass!.msg], [1, name, 'done', 'job pass'], printed())
    const [row] = await database!.adminSql`select count(*)::int as passes from job_run where job = ${name}`
    assert.equal(row!.passes, 1)
  })
}

test('the version check sent one request, with the versions of the chart and of Kubernetes', { skip }, () => {
  assert.equal(releases!.heard.length, 1)
  const { chart, k8s, features } = releases!.heard[0]!.query
  assert.deepEqual([chart, features], [VERSION, 'none'])
  assert.match(k8s!, /^v1\.\d+\.\d+/)
})

test('the migration of the hook creates the schema in an empty database, and succeeds again on the second run', {
  skip,
}, async (t) => {
  const name = `chart_${process.pid}`
  await administer(database!.url, `create database ${name} template template0 encoding 'UTF8'`)
  t.after(() => administer(database!.url, `drop database ${name} with (force)`))
  const DATABASE_URL = database!.url.replace(/(\/\/[^/]*\/)[^?]*/, `$1${name}`)
  const [migration] = ofKind('database-host', 'Job')
  for (const turn of [1, 2]) {
    const { ended, printed } = start(t, migration!, { DATABASE_URL })
    assert.equal(await ended, 0, `${turn}: ${printed()}`)
    assert.match(printed(), /the schema is up to date/)
  }
})

for (const [toggle, scheduled] of [
  ['jobs-external-database', []],
  ['database-host', jobs.map(({ name }) => name)],
] as const) {
  test(`${toggle}: the broker starts, its probes succeed, and it runs ${scheduled.length} jobs`, {
    skip,
  }, async (t) => {
    const admin = await freePort()
    const manifest = object(toggle, 'Deployment', 'broker')
    const changes = { ADMIN_ADDR: `127.0.0.1:${admin}`, LISTEN_ADDR: '127.0.0.1:0' }
    const { child, ended, lines, printed } = start(t, manifest, changes)
    await until(
      'its jobs are scheduled',
      () => child.exitCode !== null || lines().some(({ msg }) => msg === 'jobs scheduled'),
    )
    assert.equal(child.exitCode, null, printed())
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path } = container(manifest)[probe].httpGet
      await until(`${probe} is content`, async () => (await fetch(`http://127.0.0.1:${admin}${path}`)).ok)
    }
    assert.deepEqual(lines().find(({ msg }) => msg === 'jobs scheduled')!.jobs, scheduled)
    // An alert uses this series, so its name must match.
    const api = String(lines().find(({ msg }) => msg === 'listening')!.api)
    const pod = {
      pod_name: 'web-0',
      pod_ip: '10.0.0.1',
      node_name: 'node-a',
      is_dead: false,
      time_stamp: '2026-01-01T00:00:00',
    }
    const posted = await fetch(`${api}/pod/spec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(pod),
    })
    assert.equal(posted.status, 200)
    const metrics = await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text()
    assert.match(
      metrics,
      /^broker_http_request_duration_seconds_count\{method="POST",route="\/pod\/spec",status="200"\} 1$/m,
    )
    const signalled = performance.now()
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
    // A generous limit that still detects a hang.
    assert.ok(performance.now() - signalled < 1000 * 120)
  })
}

test('the edge proxy reads from the broker with its token, both with the environment of their manifests', {
  skip,
}, async (t) => {
  const addresses = { ADMIN_ADDR: '127.0.0.1:0', LISTEN_ADDR: '127.0.0.1:0' }
  const broker = start(t, object('frontend-scoped', 'Deployment', 'broker'), addresses)
  const listening = (program: typeof broker) => program.lines().find(({ msg }) => msg === 'listening')
  const { api } = await until('the broker listens', () => listening(broker))
  const edge = start(t, object('frontend-scoped', 'Deployment', 'frontend'), { ...addresses, BROKER_URL: String(api) })
  const { edge: url } = await until('the edge proxy listens', () => listening(edge))
  assert.equal((await fetch(`${api}/pod/namespaces`)).status, 401)
  const answer = await fetch(`${url}/api/pod/namespaces`)
  assert.deepEqual([answer.status, await answer.json()], [200, []])
  assert.equal((await fetch(`${url}/api/pod/spec`, { method: 'POST', body: '{}' })).status, 405)
  for (const program of [edge, broker]) {
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0, program.printed())
  }
})

test('the broker accepts posts with the token of the supply-chain component, and refuses those with the token of agents', {
  skip,
}, async (t) => {
  const broker = start(t, object('supplychain', 'Deployment', 'broker'), {
    ADMIN_ADDR: '127.0.0.1:0',
    LISTEN_ADDR: '127.0.0.1:0',
  })
  const { api } = await until('the broker listens', () => broker.lines().find(({ msg }) => msg === 'listening'))
  const { BROKER_AUTH_TOKEN: token } = lived(object('supplychain', 'Deployment', 'supplychain'))
  const digest = `sha256:${'0'.repeat(64)}`
  const body = {
    schema_version: 1,
    source: 'operator-scanner',
    image: { digest },
    scanned_at: '2026-01-01T00:00:00Z',
    vulnerabilities: [],
  }
  const report = async (bearer: string) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` }
    const answer = await fetch(`${api}/images/${digest}/vulnerabilities`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    return [answer.status, await answer.text()]
  }
  assert.equal((await report(tokenOf('ingest')))[0], 403)
  assert.deepEqual(await report(token!), [200, '{"status":"stored","items":0}'])
  broker.child.kill('SIGTERM')
  assert.equal(await broker.ended, 0, broker.printed())
})
