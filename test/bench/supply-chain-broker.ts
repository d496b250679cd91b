import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const WATCH = fileURLToPath(new URL('supply-chain-watch.mjs', import.meta.url))

/** What a broker asks for here. */
export const TOKENS = {
  BROKER_TOKEN_READ: 'read-token-of-the-benchmark',
  BROKER_TOKEN_INGEST: 'ingest-token-of-the-benchmark',
  BROKER_TOKEN_SUPPLYCHAIN: 'supplychain-token-of-the-benchmark',
}

/** How the event loop fared. */
export interface Loop {
  p99Ms: number
  maxMs: number
}

/** The built broker as its own process, as the start script runs it, with tokens and without jobs. */
export class SupplyChainBroker {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(databaseUrl: string, env: NodeJS.ProcessEnv = {}): Promise<SupplyChainBroker> {
    const child = spawn(process.execPath, ['--v8-pool-size=1', '--import', WATCH, 'dist/lib/server.js'], {
      env: {
        ...process.env,
        ...TOKENS,
        MALLOC_ARENA_MAX: '2',
        DATABASE_URL: databaseUrl,
        JOBS: 'external',
        LISTEN_ADDR: '127.0.0.1:0',
        ADMIN_ADDR: '127.0.0.1:0',
        LOG_LEVEL: 'info',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    process.once('exit', () => child.kill('SIGKILL'))
    const port = await new Promise<number>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the broker ended with ${code}`)))
      createInterface({ input: child.stdout! }).on('line', (line) => {
        const address = line.includes('"listening"') ? (JSON.parse(line) as { api: string }).api : null
        if (address) resolve(Number(new URL(address).port))
      })
    })
    return new SupplyChainBroker(child, port)
  }

  /** Since this was last asked. */
  async loop(): Promise<Loop> {
    const answered = once(this.#child, 'message')
    this.#child.send('loop')
    const [loop] = (await answered) as [Loop]
    return loop
  }

  /** Peak resident memory in MiB since it was last asked, where the system allows to forget it. */
  peakMib(): number {
    const kib = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${this.#child.pid}/status`, 'utf8'))?.[1]
    try {
      writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5')
    } catch {}
    return Number(kib ?? 0) / 1_024
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await exited
  }
}

export interface Pass {
  rows: number
  batches: number
  durationMs: number
  outcome: string
}

/** One pass of the job that links what scanners found. */
export const refresh = (databaseUrl: string) => pass(databaseUrl, 'supply-chain-refresh')

/** One pass of a job in a process of its own. */
export async function pass(databaseUrl: string, job: string, more: NodeJS.ProcessEnv = {}): Promise<Pass> {
  const env = { ...process.env, DATABASE_URL: databaseUrl, LOG_LEVEL: 'info', ...more }
  const child = spawn(process.execPath, ['dist/jobs/run.js', job], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  let report: Pass | undefined
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('"job pass"')) report = JSON.parse(line)
  const [code] = await ended
  if (code !== 0 || !report) throw new Error(`the pass ended with ${code}`)
  return report
}
