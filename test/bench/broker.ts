import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { noLog } from '../support/log.ts'

export interface Bench {
  port: number
  /** Of the Node process. */
  pid: number
  /** Peak resident memory of the Node process so far, MiB. */
  peakMib(): Promise<number>
  residentMib(): Promise<number>
  /** Every table, the largest first. */
  tables(): Promise<{ name: string; rows: string; size: string }[]>
  stop(): Promise<void>
}

/** A process that answers every request with five bytes, on the HTTP stack of the broker. */
export async function startBare(): Promise<{ port: number; stop(): void }> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/bench/bare.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.once('exit', () => child.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { port: Number(line), stop: () => void child.kill('SIGKILL') }
}

/**
 * The built broker as its own process, on an embedded database in a temporary folder unless DATABASE_URL is set or a DATA_DIR
 * given.
 */
export async function startBroker(settings: NodeJS.ProcessEnv = {}): Promise<Bench> {
  const dataDir = settings.DATA_DIR ?? (await mkdtemp(join(tmpdir(), 'broker-bench-')))
  const env = { ...process.env, ...settings, DATA_DIR: dataDir, LISTEN_ADDR: '127.0.0.1:0', ADMIN_ADDR: '127.0.0.1:0' }
  const child = spawn(process.execPath, ['--v8-pool-size=1', 'dist/lib/server.js'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.once('exit', () => child.kill('SIGKILL'))
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the broker ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const address = line.includes('"listening"') ? (JSON.parse(line) as { api: string }).api : null
      if (address) resolve(Number(new URL(address).port))
    })
  })
  const memoryMib = async (field: 'VmHWM' | 'VmRSS') => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1_024
  }
  return {
    port,
    pid: child.pid!,
    peakMib: () => memoryMib('VmHWM'),
    residentMib: () => memoryMib('VmRSS'),
    async tables() {
      const server = await startEmbedded({ dataDir, log: noLog })
      const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0 })
      const rows = await sql<{ name: string; rows: string; size: string }[]>`
        select relname as name, n_live_tup as rows, pg_size_pretty(pg_total_relation_size(relid)) as size
        from pg_stat_user_tables order by pg_total_relation_size(relid) desc`
      await sql.end({ timeout: 1 })
      await server.stop()
      return [...rows]
    },
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      if (!settings.DATA_DIR) await rm(dataDir, { recursive: true, force: true })
    },
  }
}
