// Starts a broker as a user would (its own process, its own embedded database) and talks to it over HTTP.
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

// No broker outlives the file that started it.
const groups = new Set()
process.on('exit', () => {
  for (const pid of groups)
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      /* gone */
    }
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))

const root = resolve(process.env.PROJECT_ROOT ?? process.cwd())

export async function freePort() {
  const s = createServer()
  await new Promise((ok, no) => s.once('error', no).listen(0, '127.0.0.1', ok))
  const { port } = s.address()
  await new Promise((ok) => s.close(ok))
  return port
}

/** A folder for a broker; it has the prepared database, if there is one and the broker has none elsewhere. */
async function newDataDir({ DATABASE_URL }) {
  const folder = await mkdtemp(join(tmpdir(), 'broker-conformance-'))
  const { PREPARED_DATA_DIR: prepared } = process.env
  // `cp` keeps the owner: as root, the database belongs to another account.
  if (prepared && !DATABASE_URL) await promisify(execFile)('cp', ['-Rp', `${prepared}/.`, folder])
  return folder
}

/**
 * Starts the broker. `env` is added to a clean environment. Waits until GET /health answers 200.
 * Options: dataDir (keep a database between starts), wait (false: do not wait for health).
 * Returns { url, admin, get, post, put, del, request, stop, restart, kill, log, child, exited, dataDir }.
 */
export async function startBroker({ env = {}, dataDir, wait = true, healthTimeoutMs = 45_000 } = {}) {
  const own = !dataDir
  dataDir ??= await newDataDir(env)
  const port = await freePort()
  const adminPort = await freePort()
  // No shell stays between: its end would be taken for the broker's.
  const command = process.env.BROKER_CMD ?? 'exec node dist/lib/server.js'
  if (!process.env.BROKER_CMD && !existsSync(join(root, 'dist/lib/server.js'))) {
    throw new Error('dist/lib/server.js is missing: run `npm run build` first')
  }
  const clean = Object.fromEntries(
    ['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR', 'LD_LIBRARY_PATH'].flatMap((k) =>
      process.env[k] ? [[k, process.env[k]]] : [],
    ),
  )
  const child = spawn(command, {
    shell: true,
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...clean,
      LISTEN_ADDR: `127.0.0.1:${port}`,
      ADMIN_ADDR: `127.0.0.1:${adminPort}`,
      DATA_DIR: dataDir,
      LOG_LEVEL: 'info',
      CORS_ORIGINS: '*',
      ...env,
    },
  })
  groups.add(child.pid)
  child.once('exit', () => groups.delete(child.pid))
  let log = ''
  const keep = (b) => {
    log = (log + b).slice(-400_000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const exited = new Promise((ok) => child.once('exit', (code, signal) => ok({ code, signal })))
  const url = `http://127.0.0.1:${port}`
  const b = client(url)
  const group = (sig) => {
    try {
      process.kill(-child.pid, sig)
    } catch {
      /* gone */
    }
  }
  Object.assign(b, {
    url,
    admin: `http://127.0.0.1:${adminPort}`,
    child,
    exited,
    dataDir,
    kill: (sig = 'SIGKILL') => group(sig),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        group('SIGTERM')
        const out = await Promise.race([exited, sleep(25_000, null, { ref: false })])
        if (!out) {
          group('SIGKILL')
          await exited
        }
      }
      if (own) await rm(dataDir, { recursive: true, force: true })
    },
  })
  Object.defineProperty(b, 'log', { get: () => log })
  if (wait) {
    const end = Date.now() + healthTimeoutMs
    for (;;) {
      if (child.exitCode !== null)
        throw new Error(`broker exited with ${child.exitCode} before it was healthy:\n${log.slice(-4000)}`)
      const ok = await fetch(`${url}/health`).then(
        (r) => r.status === 200,
        () => false,
      )
      if (ok) break
      if (Date.now() > end) {
        await b.stop()
        throw new Error(`broker not healthy in ${healthTimeoutMs} ms:\n${log.slice(-4000)}`)
      }
      await sleep(100)
    }
  }
  return b
}

/** A small HTTP client: b.get(path), b.post(path, json), each returning { status, headers, text, json }. */
export function client(url, token) {
  const request = async (method, path, { body, headers = {}, raw = false, bearer = token } = {}) => {
    const h = { ...headers }
    if (bearer) h.authorization ??= `Bearer ${bearer}`
    if (body !== undefined && !raw) {
      h['content-type'] ??= 'application/json'
      body = JSON.stringify(body)
    }
    const r = await fetch(url + path, {
      method,
      headers: h,
      body,
      redirect: 'manual',
      ...(raw && body ? { duplex: 'half' } : {}),
    })
    const text = await r.text()
    let json
    try {
      json = JSON.parse(text)
    } catch {
      json = undefined
    }
    return { status: r.status, headers: r.headers, text, json }
  }
  return {
    request,
    get: (p, o) => request('GET', p, o),
    post: (p, body, o) => request('POST', p, { body, ...o }),
    put: (p, body, o) => request('PUT', p, { body, ...o }),
    del: (p, o) => request('DELETE', p, o),
    as: (bearer) => client(url, bearer),
  }
}

/** Polls until fn() returns something truthy, or fails with the last value seen. */
export async function eventually(fn, { timeoutMs = 15_000, everyMs = 100, what = 'condition' } = {}) {
  const end = Date.now() + timeoutMs
  let last
  for (;;) {
    last = await fn()
    if (last) return last
    if (Date.now() > end) throw new Error(`${what} did not hold within ${timeoutMs} ms`)
    await sleep(everyMs)
  }
}
