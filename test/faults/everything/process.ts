/** Programs that are restarted whenever they end. At the end of the run they are killed by id, never by name. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const END_MS = 20_000

export interface Span {
  from: number
  to: number
}

const started = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of started) child.kill('SIGKILL')
})

/** Registers a process to be killed at the end of the run. */
export function remembered(child: ChildProcess): ChildProcess {
  started.add(child)
  child.once('exit', () => started.delete(child))
  child.once('error', () => started.delete(child))
  return child
}

export interface Program {
  name: string
  launch: () => ChildProcess
  /** Milliseconds from its end to its next start. */
  restartMs: () => number
  /** Called when the process ended without a fault. */
  onUnexpected: (how: string, wasReady: boolean) => void
}

export class Supervised {
  readonly name: string
  child!: ChildProcess
  /** In use by a fault that needs the process alone. */
  busy = false
  /** Times when it was down or stopped by a signal. The last one has no end while it lasts. */
  readonly disturbed: Span[] = []
  #wanted = false
  #struck = false
  #ready = false
  #suspended = false
  readonly #program: Program

  constructor(program: Program) {
    this.#program = program
    this.name = program.name
  }

  get isReady(): boolean {
    return this.#ready
  }

  get pid(): number {
    return this.child.pid!
  }

  start(): void {
    this.#wanted = true
    this.#struck = false
    this.#suspended = false
    this.#disturb()
    const child = remembered(this.#program.launch())
    this.child = child
    child.once('error', (error) => this.#program.onUnexpected(String(error), false))
    child.once('exit', (code, signal) => {
      const wasReady = this.#ready
      this.#disturb()
      if (!this.#struck && this.#wanted)
        this.#program.onUnexpected(signal ? `by ${signal}` : `with code ${code}`, wasReady)
      if (this.#wanted) setTimeout(() => this.#wanted && this.start(), this.#program.restartMs())
    })
  }

  /** Called when the process reports that it is ready. */
  ready(): void {
    this.#ready = true
    if (!this.#suspended) this.#settle()
  }

  /** Sends a signal that ends the process. */
  strike(signal: NodeJS.Signals): void {
    this.#struck = true
    this.#disturb()
    this.child.kill(signal)
  }

  suspend(): void {
    this.#suspended = true
    const wasReady = this.#ready
    this.#disturb()
    this.#ready = wasReady
    this.child.kill('SIGSTOP')
  }

  resume(): void {
    if (!this.#suspended) return
    this.#suspended = false
    this.child.kill('SIGCONT')
    if (this.#ready) this.#settle()
  }

  /** Whether it ran all the time, without a fault. */
  ranThrough(from: number, to: number): boolean {
    return !this.disturbed.some((span) => span.from <= to && span.to >= from)
  }

  #disturb(): void {
    this.#ready = false
    const last = this.disturbed.at(-1)
    if (!last || last.to !== Number.POSITIVE_INFINITY)
      this.disturbed.push({ from: Date.now(), to: Number.POSITIVE_INFINITY })
  }

  #settle(): void {
    const last = this.disturbed.at(-1)
    if (last) last.to = Math.min(last.to, Date.now())
  }

  /** Ends the process for good. Returns a message if it had to be killed. */
  async end(signal: NodeJS.Signals): Promise<string | null> {
    this.#wanted = false
    if (!this.child || this.child.exitCode !== null || this.child.signalCode !== null) return null
    this.#struck = true
    const exited = once(this.child, 'exit')
    this.child.kill('SIGCONT')
    this.child.kill(signal)
    if (await Promise.race([exited, delay(END_MS, null, { ref: false })])) return null
    this.child.kill('SIGKILL')
    await exited
    return `${this.name} did not end within ${END_MS / 1_000} s of ${signal}`
  }
}

/** Below the ephemeral ports, one of which could take the port of a program that is down. */
const PORTS = [15_000, 31_000] as const
const MOST_TRIES = 100

/** A port of the loopback interface that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const port = PORTS[0] + Math.floor(Math.random() * (PORTS[1] - PORTS[0]))
    const server = net.createServer()
    try {
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
    } catch {
      continue
    }
    await new Promise((resolve) => server.close(resolve))
    return port
  }
  throw new Error('no free port')
}
