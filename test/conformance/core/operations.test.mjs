// Operations: health, metrics, the read budget, starting, stopping, restarting and crashing.
// Retention has a floor of 60 s and a first pass after 60 s: its case runs only with CONFORMANCE_SLOW=1 and adds about a minute
// and a half.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

const SLOW = process.env.CONFORMANCE_SLOW === '1'
const cleanups = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup().catch(() => {})
})
const lazy = (make) => {
  let made
  return () => (made ??= make())
}
const start = async (options) => {
  const b = await startBroker(options)
  cleanups.push(() => b.stop())
  return b
}
/** Starts a broker without waiting for it and keeps everything that it prints in `printed`. */
async function startLogged(env) {
  const b = await startBroker({ env, wait: false })
  cleanups.push(() => b.stop())
  b.printed = ''
  for (const stream of [b.child.stdout, b.child.stderr])
    stream.on('data', (chunk) => {
      b.printed += chunk
    })
  return b
}
const dataFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'broker-conformance-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const READ = 'ops-read-2f6d90b1c4'
const INGEST = 'ops-ingest-a81e55f07d'
const guarded = lazy(() => start({ env: { BROKER_TOKEN_READ: READ, BROKER_TOKEN_INGEST: INGEST } }))
const tight = lazy(() => start({ env: { BROKER_READ_MEMORY_BUDGET_MB: '1', BROKER_READ_ACQUIRE_WAIT_MS: '0' } }))

let nextPort = 1
const flow = (pod_name, over = {}) => {
  const n = nextPort++
  return {
    uuid: randomUUID(),
    pod_name,
    pod_namespace: 'shop',
    pod_ip: '10.60.0.1',
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: `10.61.${n >> 14}.1`,
    traffic_in_out_port: String(1 + (n & 16383)),
    decision: 'ALLOW',
    time_stamp: '2025-06-01T12:00:00',
    ...over,
  }
}
const flows = (pod, n) => Array.from({ length: n }, () => flow(pod))
const pod = (pod_name, over = {}) => ({
  pod_name,
  pod_ip: '10.60.0.1',
  pod_namespace: 'shop',
  node_name: 'node-a',
  is_dead: false,
  time_stamp: '2025-06-01T12:00:00',
  ...over,
})
const post = async (b, path, body, bearer) => {
  const r = await b.post(path, body, { bearer })
  assert.equal(r.status, 200, `${path}: ${r.text}`)
  return r.json
}
const metric = (text, name) => {
  const line = text.split('\n').find((l) => l.startsWith(`${name} `) || l.startsWith(`${name}{`))
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1))
}

/** The broker's own process: the harness starts it through a shell, which may stay its parent. */
function brokerPid(b) {
  const children = (parent) =>
    readdirSync('/proc')
      .filter((d) => /^\d+$/.test(d))
      .filter((d) => {
        try {
          const stat = readFileSync(`/proc/${d}/stat`, 'utf8')
          return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
        } catch {
          return false
        }
      })
      .map(Number)
  let pid = b.child.pid
  while (
    existsSync('/proc/self/stat') &&
    ['sh', 'dash', 'bash'].includes(readFileSync(`/proc/${pid}/comm`, 'utf8').trim()) &&
    children(pid).length === 1
  )
    [pid] = children(pid)
  return pid
}
const exitOf = async (b, ms = 40_000) => {
  const exit = await Promise.race([b.exited, sleep(ms, null, { ref: false })])
  assert.ok(exit, 'the process is still running')
  return exit
}

/** A POST whose body is sent in two parts: await begun, then call finish(), then await answer. */
function postInParts(url, path, body) {
  const text = JSON.stringify(body)
  const { hostname, port } = new URL(url)
  const req = httpRequest({
    hostname,
    port,
    path,
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), expect: '100-continue' },
  })
  const answer = new Promise((ok, no) => {
    req.on('error', no)
    req.on('response', (res) => {
      let answered = ''
      res
        .setEncoding('utf8')
        .on('data', (c) => {
          answered += c
        })
        .on('end', () => ok({ status: res.statusCode, text: answered }))
        .on('error', no)
    })
  })
  answer.catch(() => {})
  const begun = Promise.race([once(req, 'continue'), sleep(3000)]).then(
    () =>
      new Promise((ok) => {
        req.write(text.slice(0, text.length >> 1), ok)
      }),
  )
  return { begun, answer, finish: () => req.end(text.slice(text.length >> 1)) }
}
/** Resolves when new connections are refused or health is not 200, at the latest after three seconds. */
async function closing(b) {
  const { hostname, port } = new URL(b.url)
  for (let i = 0; i < 30; i++) {
    const status = await new Promise((ok) => {
      httpRequest({ hostname, port, path: '/health', agent: false, timeout: 1000 }, (res) => {
        res.resume()
        ok(res.statusCode)
      })
        .on('error', () => ok(0))
        .on('timeout', () => ok(0))
        .end()
    })
    if (status !== 200) return
    await sleep(100)
  }
}

// ---- health and metrics

check('operations: health is open and says so in one word', async () => {
  const b = await guarded()
  const r = await b.get('/health')
  assert.equal(r.status, 200)
  assert.equal(r.text, 'Healthy!')
  assert.match(r.headers.get('content-type'), /^text\/plain/)
})

check('operations: metrics are open, in the text format, under the known names', async () => {
  const b = await guarded()
  const r = await b.get('/metrics')
  assert.equal(r.status, 200)
  assert.match(r.headers.get('content-type'), /^text\/plain; version=0\.0\.4; charset=utf-8$/)
  for (const name of [
    'broker_db_schema_ready',
    'broker_db_reachable',
    'broker_audit_enabled',
    'broker_audit_inflight_available',
    'broker_audit_dropped_total',
    'broker_db_pool_idle',
    'broker_db_pool_max',
    'broker_read_budget_kib_total',
    'broker_read_budget_kib_available',
    'broker_read_shed_total',
    'broker_uptime_seconds',
    'broker_seccomp_profiles_cache_hits_total',
    'broker_seccomp_profiles_cache_misses_total',
  ])
    assert.ok(Number.isFinite(metric(r.text, name)), `${name} is missing`)
})

check('operations: the gauges of a healthy, idle broker', async () => {
  const b = await guarded()
  const { text } = await b.get('/metrics')
  assert.equal(metric(text, 'broker_db_schema_ready'), 1)
  assert.equal(metric(text, 'broker_db_reachable'), 1)
  assert.equal(metric(text, 'broker_audit_enabled'), 0)
  assert.equal(metric(text, 'broker_audit_dropped_total'), 0)
  assert.equal(metric(text, 'broker_read_shed_total'), 0)
  assert.equal(metric(text, 'broker_read_budget_kib_total'), 256 * 1024)
  assert.equal(metric(text, 'broker_read_budget_kib_available'), 256 * 1024)
})

check('operations: metrics carry no pod names and no addresses', async () => {
  const b = await guarded()
  const name = 'hidden-from-metrics'
  await post(b, '/pod/spec', pod(name, { pod_ip: '10.62.3.4' }), INGEST)
  await post(
    b,
    '/svc/spec',
    { svc_ip: '10.96.62.9', svc_name: 's', svc_namespace: 'shop', time_stamp: '2025-06-01T12:00:00' },
    INGEST,
  )
  await post(b, '/pod/traffic/batch', [flow(name, { pod_ip: '10.62.3.4', traffic_in_out_ip: '10.62.3.5' })], INGEST)
  for (const path of [
    `/pod/name/${name}`,
    '/pod/ip/10.62.3.4',
    `/pod/traffic/${name}`,
    '/svc/ip/10.96.62.9',
    `/pod/syscalls/${name}`,
    '/pod/ip/10.62.3.5',
  ])
    await b.get(path, { bearer: READ })
  const { text } = await b.get('/metrics')
  for (const word of [name, '10.62.3.4', '10.62.3.5', '10.96.62.9'])
    assert.ok(!text.includes(word), `${word} is in the metrics`)
})

check('operations: the admin port answers live, ready and the same metrics', async () => {
  const b = await guarded()
  assert.equal((await fetch(`${b.admin}/livez`)).status, 200)
  assert.equal((await fetch(`${b.admin}/readyz`)).status, 200)
  const r = await fetch(`${b.admin}/metrics`)
  assert.equal(r.status, 200)
  assert.equal(metric(await r.text(), 'broker_db_reachable'), 1)
})

// ---- the read budget

check('operations: a read over the budget is answered whole or shed, never cut', async () => {
  const b = await tight()
  for (let i = 0; i < 3; i++) assert.equal(await post(b, '/pod/traffic/batch', flows('budget', 1000)), 1000)
  assert.equal(metric((await b.get('/metrics')).text, 'broker_read_budget_kib_total'), 1024)
  let whole = 0
  let shed = 0
  await eventually(
    async () => {
      for (const r of await Promise.all(Array.from({ length: 40 }, () => b.get('/pod/traffic?limit=20000')))) {
        if (r.status === 200) {
          whole += 1
          assert.equal(r.json?.length, 3000)
        } else {
          shed += 1
          assert.equal(r.status, 503, r.text.slice(0, 200))
          assert.equal(r.headers.get('retry-after'), '1')
          assert.match(r.text, /read memory budget/)
          assert.match(r.text, /needs \d+ KiB of a 1024 KiB budget/)
        }
      }
      return whole && shed
    },
    { timeoutMs: 30_000, what: 'both a whole answer and a shed one' },
  )
  await eventually(async () => metric((await b.get('/metrics')).text, 'broker_read_budget_kib_available') === 1024, {
    what: 'the whole budget free',
  })
  assert.equal(metric((await b.get('/metrics')).text, 'broker_read_shed_total'), shed)
  assert.equal((await b.get('/pod/traffic?limit=20000')).json.length, 3000)
})

// ---- start and stop

check('operations: production without DATABASE_URL does not start and says why', async () => {
  const b = await startLogged({ NODE_ENV: 'production' })
  const { code } = await exitOf(b)
  assert.notEqual(code, 0)
  await eventually(() => b.printed.includes('DATABASE_URL'), { what: 'a line naming DATABASE_URL' })
})

check('operations: SIGTERM lets the request in flight finish, exits 0, and the data survive the restart', async () => {
  const dataDir = await dataFolder()
  const first = await start({ dataDir })
  await post(first, '/pod/spec', pod('survivor', { pod_ip: '10.60.7.7' }))
  await post(first, '/svc/spec', {
    svc_ip: '10.96.0.7',
    svc_name: 'web',
    svc_namespace: 'shop',
    time_stamp: '2025-06-01T12:00:00',
  })
  await post(first, '/pod/syscalls', [
    {
      pod_name: 'survivor',
      pod_namespace: '',
      syscalls: ['read', 'write'],
      arch: 'x86_64',
      time_stamp: '2025-06-01T12:00:00',
    },
  ])
  const kept = flows('survivor', 20)
  assert.equal(await post(first, '/pod/traffic/batch', kept), 20)

  const late = flows('late', 50)
  const upload = postInParts(first.url, '/pod/traffic/batch', late)
  await upload.begun
  process.kill(brokerPid(first), 'SIGTERM')
  await closing(first)
  upload.finish()
  const answer = await upload.answer
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '50')
  assert.equal((await exitOf(first)).code, 0)

  const second = await start({ dataDir })
  assert.equal((await second.get('/pod/name/survivor')).json.pod_ip, '10.60.7.7')
  assert.equal((await second.get('/svc/ip/10.96.0.7')).json.svc_name, 'web')
  assert.equal((await second.get('/pod/syscalls/survivor')).json[0].syscalls, 'read,write')
  assert.deepEqual(
    (await second.get('/pod/traffic/survivor')).json.map((r) => r.uuid).sort(),
    kept.map((f) => f.uuid).sort(),
  )
  assert.deepEqual(
    (await second.get('/pod/traffic/late')).json.map((r) => r.uuid).sort(),
    late.map((f) => f.uuid).sort(),
  )
  assert.equal(
    await post(
      second,
      '/pod/traffic/batch',
      kept.map((f) => ({ ...f, uuid: randomUUID() })),
    ),
    0,
  )
})

check('operations: kill -9 in a stream of batches loses no acknowledged row', async () => {
  const dataDir = await dataFolder()
  const first = await start({ dataDir })
  const acknowledged = []
  const unknown = []
  let killed = false
  await Promise.all(
    [1, 2, 3].map(async () => {
      while (!killed) {
        const batch = flows('stream', 20)
        try {
          const r = await first.post('/pod/traffic/batch', batch)
          if (r.status === 200) {
            assert.equal(r.json, 20)
            acknowledged.push(...batch)
          } else {
            assert.ok(killed, `answered ${r.status} before the kill`)
            unknown.push(batch)
          }
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error
          unknown.push(batch)
        }
        if (acknowledged.length >= 1000 && !killed) {
          killed = true
          first.kill()
        }
      }
    }),
  )
  await first.exited

  const second = await start({ dataDir })
  const stored = new Set((await second.get('/pod/traffic/stream')).json.map((r) => r.uuid))
  assert.deepEqual(
    acknowledged.filter((f) => !stored.has(f.uuid)),
    [],
  )
  for (const batch of unknown) assert.equal((await second.post('/pod/traffic/batch', batch)).status, 200)
  const all = (await second.get('/pod/traffic/stream')).json.map((r) => r.uuid)
  assert.equal(all.length, acknowledged.length + unknown.length * 20)
  assert.equal(new Set(all).size, all.length)
})

check('operations: an unknown job is refused with a non-zero exit code', async (t) => {
  const root = resolve(process.env.PROJECT_ROOT ?? process.cwd())
  if (!existsSync(join(root, 'dist/jobs/run.js'))) {
    if (process.env.BROKER_CMD) return t.skip('no dist/jobs/run.js beside BROKER_CMD')
    assert.fail('dist/jobs/run.js is missing')
  }
  const child = spawn('node', ['dist/jobs/run.js', 'no-such-job'], {
    cwd: root,
    stdio: 'ignore',
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATA_DIR: await dataFolder() },
  })
  const exit = await Promise.race([once(child, 'exit'), sleep(45_000, null, { ref: false })])
  if (!exit) child.kill('SIGKILL')
  assert.ok(exit, 'it is still running')
  assert.ok(exit[0] > 0, `exit code ${exit[0]}`)
})

// ---- retention, a minute after the start

const pruned = lazy(async () => {
  const b = await start({
    env: {
      DEAD_POD_RETENTION_DAYS: '2',
      AUDIT_VERDICTS_RETENTION_DAYS: '0',
      AUDIT_VERDICTS_RETENTION_INTERVAL_SECS: '60',
      PEER_STALE_ALIVE_SECS: '0',
    },
  })
  const daysAgo = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, -1)
  await post(b, '/pod/spec', pod('dead-3-days', { is_dead: true, time_stamp: daysAgo(3) }))
  await post(b, '/pod/spec', pod('dead-1-day', { is_dead: true, time_stamp: daysAgo(1) }))
  await post(b, '/pod/spec', pod('alive-30-days', { time_stamp: daysAgo(30) }))
  return b
})
if (SLOW) pruned().catch(() => {})
for (const part of [1, 2]) {
  check(`operations: retention deletes the dead pods past their window and no others, part ${part} of 2`, async (t) => {
    if (!SLOW) return t.skip('CONFORMANCE_SLOW=1 runs it')
    const b = await pruned()
    const gone = async () => (await b.get('/pod/name/dead-3-days')).status === 404
    if (part === 1) {
      for (let i = 0; i < 50 && !(await gone()); i++) await sleep(1000)
      return
    }
    await eventually(gone, { timeoutMs: 50_000, everyMs: 500, what: 'the pruning' })
    assert.equal((await b.get('/pod/name/dead-1-day')).status, 200)
    assert.equal((await b.get('/pod/name/alive-30-days')).json.is_dead, false)
  })
}
