import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { freePort, remembered, Supervised } from './process.ts'
import type { Dice, Recorder } from './record.ts'

const KEPT_LOG_LINES = 40
const KEPT_STDERR_CHARS = 4_000

/** One of several built brokers. It keeps its addresses when it is restarted. */
export class Broker {
  readonly process: Supervised
  readonly name: string
  readonly port: number
  readonly adminPort: number
  /** Greatest resident memory of its processes, MiB. */
  peakMib = 0
  /** The last warnings and errors. */
  readonly log: string[] = []
  /** Counts of warnings and errors by message, without digits. */
  readonly said = new Map<string, number>()

  private constructor(number: number, ports: [number, number], env: NodeJS.ProcessEnv, dice: Dice, record: Recorder) {
    this.name = `broker ${number}`
    ;[this.port, this.adminPort] = ports
    const { DATABASE_URL: _, ...inherited } = process.env
    let stderr = ''
    this.process = new Supervised({
      name: this.name,
      launch: () => {
        stderr = ''
        const child = remembered(
          spawn(process.execPath, ['--v8-pool-size=1', 'dist/lib/server.js'], {
            stdio: ['ignore', 'pipe', 'pipe'],
            env: {
              ...inherited,
              NODE_ENV: 'development',
              LISTEN_ADDR: `127.0.0.1:${this.port}`,
              ADMIN_ADDR: `127.0.0.1:${this.adminPort}`,
              LOG_LEVEL: 'info',
              ...env,
            },
          }),
        )
        createInterface({ input: child.stdout! }).on('line', (line) => this.#read(line))
        child.stderr!.on('data', (bytes) => {
          stderr = (stderr + bytes).slice(-KEPT_STDERR_CHARS)
        })
        return child
      },
      restartMs: () => dice.between(200, 2_000),
      onUnexpected: (how, wasReady) => {
        const last = `${this.log.slice(-3).join(' ')} ${stderr}`.trim()
        // Without a database a start fails after a time and is repeated.
        if (wasReady) record.violation('a broker stays up', `${this.name} ended ${how}: ${last}`, Date.now() - 30_000)
        else record.print(`${this.name} could not start (${how}): ${last.slice(0, 500)}`)
      },
    })
  }

  static async create(number: number, env: NodeJS.ProcessEnv, dice: Dice, record: Recorder): Promise<Broker> {
    return new Broker(number, [await freePort(), await freePort()], env, dice, record)
  }

  #read(line: string): void {
    if (line.includes('"msg":"request"')) return
    if (line.includes('"msg":"listening"')) this.process.ready()
    if (!/"level":"(warn|error|fatal)"/.test(line)) return
    const { level, msg, err } = JSON.parse(line) as { level: string; msg: string; err?: { code?: string } }
    const text = `${level} "${msg.replace(/\d+/g, 'n')}"${err?.code ? ` ${err.code}` : ''}`
    this.said.set(text, (this.said.get(text) ?? 0) + 1)
    this.log.push(line.slice(0, 1_000))
    if (this.log.length > KEPT_LOG_LINES) this.log.shift()
  }

  /** Peak of resident memory since the process started, MiB. */
  sampleMemory(): number {
    try {
      const kib = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${this.process.pid}/status`, 'utf8'))?.[1] ?? 0)
      this.peakMib = Math.max(this.peakMib, kib / 1_024)
      return kib / 1_024
    } catch {
      return 0
    }
  }
}
