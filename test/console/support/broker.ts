/** The compiled broker as a process of its own on a seeded database, for tests in a browser and for `demo.ts`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const SERVER = 'dist/lib/server.js'
const KEPT_STDERR_CHARS = 20_000
const KILL_AFTER_MS = 10_000

/** The tokens of a broker that asks for them. */
export const TOKENS = {
  BROKER_TOKEN_READ: 'read-token-of-the-console-tests',
  BROKER_TOKEN_INGEST: 'ingest-token-of-the-console-tests',
  BROKER_TOKEN_SUPPLYCHAIN: 'supplychain-token-of-the-console-tests',
}

export interface ConsoleBroker {
  /** Without a slash at the end. */
  readonly url: string
  readonly admin: string
  readonly pid: number
  readonly stderr: string
  readonly hasExited: boolean
  /** Sends a signal, by default SIGKILL, and does not wait. */
  kill(signal?: NodeJS.Signals): void
  /** Sends SIGTERM and waits until the process has ended. */
  stop(): Promise<void>
}

export interface ConsoleBrokerOptions {
  readonly databaseUrl: string
  /** Whether it asks for `TOKENS`; false by default. */
  readonly tokens?: boolean
  /** A free one by default. */
  readonly port?: number
  readonly env?: NodeJS.ProcessEnv
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * Starts the broker on the loopback address and waits until it is ready. It runs no jobs: they would mark pods as dead
 * that nobody posts, and delete old data.
 */
export async function startConsoleBroker(options: ConsoleBrokerOptions): Promise<ConsoleBroker> {
  const { databaseUrl, tokens = false, port = 0, env = {} } = options
  const child = spawn(process.execPath, ['--v8-pool-size=1', SERVER], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...{ PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, MALLOC_ARENA_MAX: '2', NODE_ENV: 'development' },
      ...{ CONSOLE: 'true', JOBS: 'external', LOG_LEVEL: 'info', DATABASE_URL: databaseUrl },
      ...{ LISTEN_ADDR: `127.0.0.1:${port}`, ADMIN_ADDR: '127.0.0.1:0' },
      ...(tokens && TOKENS),
      ...env,
    },
  })
  running.add(child)
  let stderr = ''
  let lastLine = ''
  let hasExited = false
  const exited = once(child, 'exit').then(() => {
    hasExited = true
    running.delete(child)
  })
  child.stderr.on('data', (bytes) => {
    stderr = (stderr + bytes).slice(-KEPT_STDERR_CHARS)
  })
  const addresses = await new Promise<{ api: string; admin: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lastLine = line
      if (line.includes('"listening"')) resolve(JSON.parse(line))
    })
    void exited.then(() => reject(new Error(`the broker ended early: ${lastLine} ${stderr}`)))
  })
  await ready(addresses.api, () => hasExited)
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => void (hasExited || child.kill(signal))
  return {
    url: addresses.api,
    admin: addresses.admin,
    pid: child.pid!,
    get stderr() {
      return stderr
    },
    get hasExited() {
      return hasExited
    },
    kill,
    async stop() {
      kill('SIGTERM')
      const timer = setTimeout(kill, KILL_AFTER_MS)
      await exited
      clearTimeout(timer)
    },
  }
}

async function ready(url: string, hasExited: () => boolean): Promise<void> {
  for (;;) {
    if (hasExited()) throw new Error('the broker ended before it was ready')
    const answer = await fetch(`${url}/health`).catch(() => null)
    if (answer?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
