import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const WATCH = fileURLToPath(new URL('hostile-delay.mjs', import.meta.url))
const KEPT_STDERR_CHARS = 4_000

/** The built broker as its own process, which tells how long its event loop stood still. */
export class WatchedBroker {
  readonly child: ChildProcess
  port = 0
  /** How it ended, if it did. */
  end: string | null = null
  #stderr = ''
  readonly #exited: Promise<void>

  constructor(nodeArgs: string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(process.execPath, [...nodeArgs, '--import', WATCH, 'dist/lib/server.js'], {
      env: { ...process.env, ...env, LISTEN_ADDR: '127.0.0.1:0', ADMIN_ADDR: '127.0.0.1:0', LOG_LEVEL: 'info' },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const kill = () => this.child.kill('SIGKILL')
    process.once('exit', kill)
    this.child.once('exit', (code, signal) => {
      process.off('exit', kill)
      const heap = /FATAL ERROR: .*/.exec(this.#stderr)?.[0]
      this.end = heap ?? (signal ? `signal ${signal}` : `exit code ${code}`)
    })
    this.#exited = once(this.child, 'exit').then(() => {})
    this.child.stderr!.on('data', (bytes) => {
      this.#stderr = (this.#stderr + bytes).slice(-KEPT_STDERR_CHARS)
    })
  }

  async start(): Promise<this> {
    this.port = await new Promise<number>((resolve, reject) => {
      this.child.once('exit', () => reject(new Error(`the broker ended at its start: ${this.#stderr}`)))
      createInterface({ input: this.child.stdout! }).on('line', (line) => {
        const address = line.includes('"listening"') ? (JSON.parse(line) as { api: string }).api : null
        if (address) resolve(Number(new URL(address).port))
      })
    })
    return this
  }

  /** Longest stand-still since this was last asked; null when it does not say within `limitMs`. */
  async loopMs(limitMs: number): Promise<number | null> {
    if (this.end !== null || !this.child.connected) return null
    const waiting = new AbortController()
    const answered = once(this.child, 'message', { signal: waiting.signal }).catch(() => null)
    this.child.send('max', () => {})
    const answer = await Promise.race([answered, this.#exited, delay(limitMs)])
    waiting.abort()
    return (answer as [{ maxMs: number }] | null | undefined)?.[0].maxMs ?? null
  }

  /** From here on the peak is that of what follows, where the system allows it. */
  resetPeak(): void {
    try {
      writeFileSync(`/proc/${this.child.pid}/clear_refs`, '5')
    } catch {}
  }

  /** Peak resident memory in MiB; 0 when the process is gone or the system does not tell. */
  peakMib(): number {
    try {
      return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024
    } catch {
      return 0
    }
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.end !== null) return
    this.child.kill(signal)
    await this.#exited
  }
}
