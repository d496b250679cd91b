/** The server as it runs in production, for tests that need a process: death, signals, memory, sockets. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isPostmaster, readPidFile } from '../../lib/db/embedded/attach.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { copyCluster } from './prepared-cluster.ts'
import { program } from './program.ts'
import { until } from './until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const KEPT_STDERR_CHARS = 20_000

export interface Broker {
  /** The addresses of the API and of the admin port, without a slash at the end. */
  readonly url: string
  readonly admin: string
  readonly port: number
  readonly pid: number
  /** Every line except those about single requests. */
  readonly log: readonly Record<string, unknown>[]
  /** How often each status was logged. */
  readonly statuses: ReadonlyMap<number, number>
  readonly stderr: string
  readonly hasExited: boolean
  /** Resolves when the process has ended. */
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Signals only the broker, by default with SIGKILL, and does not wait. */
  kill(signal?: NodeJS.Signals): void
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export interface BrokerOptions {
  /**
   * Folder of the embedded database; an empty one gets a prepared database. By default a temporary folder, unless
   * `databaseUrl` is set.
   */
  dataDir?: string
  databaseUrl?: string
  env?: NodeJS.ProcessEnv
  /** Arguments for Node, for instance a heap limit. */
  nodeArgs?: string[]
  /** Whether to wait until the server is ready; by default true. */
  ready?: boolean
}

const running = new Set<Launched>()
const folders = new Set<string>()

// No process or folder remains after the test file.
process.on('exit', () => {
  for (const { child } of running) killGroup(child)
  for (const folder of folders) {
    const pid = postmasterPid(folder)
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
})

after(async () => {
  for (const broker of running) broker.kill()
  await Promise.all([...running].map((broker) => broker.exited))
  for (const folder of folders) {
    await stopPostgres(folder)
    rmSync(folder, { recursive: true, force: true })
  }
  folders.clear()
  running.clear()
})

function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch {}
}

/** An empty folder for the embedded database, removed at the end of the test file after its server was stopped. */
export function createDataDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'broker-process-'))
  folders.add(folder)
  return folder
}

/** The process id of the postmaster of a data folder. */
export function postmasterPid(dataDir: string): number | undefined {
  const cluster = join(dataDir, 'postgres')
  const pid = readPidFile(cluster)?.pid
  return pid !== undefined && isPostmaster(pid, cluster) ? pid : undefined
}

async function stopPostgres(dataDir: string): Promise<void> {
  const pid = postmasterPid(dataDir)
  if (pid === undefined) return
  process.kill(pid, 'SIGQUIT')
  await until('the database is gone', () => postmasterPid(dataDir) === undefined)
}

/** A pool on the embedded database of a folder; end it before the broker should stop its database. */
export function connectTo(dataDir: string, max = 2) {
  const { socketDir, port } = readPidFile(join(dataDir, 'postgres'))!
  return openPool(
    { host: socketDir, port, user: 'broker', database: 'postgres' },
    { max, fetch_types: false, connect_timeout: 0, onnotice: () => {} },
  )
}

class Launched implements Broker {
  readonly child: ChildProcess
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  readonly log: Record<string, unknown>[] = []
  readonly statuses = new Map<number, number>()
  stderr = ''
  hasExited = false
  api = ''
  admin = ''

  constructor({ databaseUrl, env = {}, nodeArgs = [] }: BrokerOptions, dataDir: string) {
    const { DATABASE_URL: _, ...inherited } = process.env
    this.child = spawn(process.execPath, [...nodeArgs, ...program('lib/server.ts')], {
      cwd: ROOT,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...inherited,
        NODE_ENV: 'development',
        LISTEN_ADDR: '127.0.0.1:0',
        ADMIN_ADDR: '127.0.0.1:0',
        LOG_LEVEL: 'info',
        // As in production. There may be no build of it either.
        CONSOLE: 'false',
        ...(databaseUrl ? { DATABASE_URL: databaseUrl } : { DATA_DIR: dataDir }),
        ...env,
      },
    })
    running.add(this)
    this.exited = once(this.child, 'exit').then(([code, signal]) => {
      this.hasExited = true
      return { code, signal }
    })
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.#read(line))
    this.child.stderr!.on('data', (bytes) => {
      this.stderr = (this.stderr + bytes).slice(-KEPT_STDERR_CHARS)
    })
  }

  #read(line: string): void {
    let entry: Record<string, unknown>
    try {
      entry = JSON.parse(line)
    } catch {
      entry = { msg: line }
    }
    if (entry.msg === 'request') {
      const status = entry.status as number
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      return
    }
    this.log.push(entry)
    if (entry.msg === 'listening') {
      this.api = entry.api as string
      this.admin = entry.admin as string
    }
  }

  get url(): string {
    return this.api
  }

  get port(): number {
    return Number(new URL(this.api).port)
  }

  get pid(): number {
    return this.child.pid!
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (!this.hasExited) this.child.kill(signal)
  }

  async stop() {
    this.kill('SIGTERM')
    return this.exited
  }
}

/** Starts the server from source on free loopback ports and waits until it is healthy. */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const dataDir = options.dataDir ?? (options.databaseUrl ? '' : createDataDir())
  if (!options.databaseUrl && !existsSync(join(dataDir, 'postgres'))) await copyCluster(dataDir)
  const broker = new Launched(options, dataDir)
  const ended = () => new Error(`the broker ended early: ${JSON.stringify(broker.log.at(-1))} ${broker.stderr}`)
  await until('the broker listens', () => broker.url || broker.hasExited)
  if (broker.hasExited) throw ended()
  if (options.ready === false) return broker
  await until(
    'the broker is healthy',
    async () => broker.hasExited || (await get(`${broker.url}/health`)).status === 200,
  )
  if (broker.hasExited) throw ended()
  return broker
}

/** Memory of a process in MiB, now and at its peak; undefined except on Linux. */
export function residentMb(pid: number): { now: number; peak: number } | undefined {
  if (process.platform !== 'linux') return undefined
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mb = (field: string) => Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(text)?.[1]) / 1024
  return { now: mb('VmRSS'), peak: mb('VmHWM') }
}

/** The value of a metric without labels, read from `/metrics`. */
export async function metric(broker: Broker, name: string): Promise<number> {
  const { text } = await get(`${broker.admin}/metrics`)
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`no metric ${name}`)
  return Number(value)
}

export interface Reply {
  status: number
  headers: http.IncomingHttpHeaders
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a body is what the test says it is.
  json: any
}

export interface RequestOptions {
  method?: string
  body?: string | Uint8Array
  headers?: http.OutgoingHttpHeaders
  /** By default each request has its own socket. */
  agent?: http.Agent
}

/** Sends one request over a real socket. Rejects when the connection ends before the answer does. */
export function request(
  url: string,
  { method = 'GET', body, headers = {}, agent }: RequestOptions = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent =
      body === undefined
        ? headers
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers }
    const outgoing = http.request(url, { method, headers: sent, agent: agent ?? false })
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: incoming.statusCode!, headers: incoming.headers, text, json: parsed(text) })
      })
    })
    outgoing.end(body)
  })
}

export const get = (url: string, options?: RequestOptions) => request(url, options)

export const post = (url: string, body: unknown, options?: RequestOptions) =>
  request(url, { method: 'POST', body: JSON.stringify(body), ...options })

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A flow as an agent posts it; another number gives another `uuid` and another key. */
export function flow(n: number, pod = 'web-0') {
  return {
    uuid: `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`,
    pod_name: pod,
    pod_namespace: 'shop',
    pod_ip: '10.1.0.1',
    pod_port: '0',
    ip_protocol: n % 10 === 0 ? 'UDP' : 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
    traffic_in_out_port: String(1024 + (n % 60_000)),
    decision: 'ALLOW',
    time_stamp: new Date(Date.UTC(2026, 0, 1) + n * 7).toISOString().slice(0, 23),
  }
}
