import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Broker } from './broker.ts'
import type { Sample } from './probe.ts'
import { remembered } from './process.ts'
import type { Recorder } from './record.ts'

const PROBE = fileURLToPath(new URL('probe.ts', import.meta.url))
const LIMIT_MS = 1_000
/** If the idle control program takes longer than this at the same time, the machine is too slow to judge. */
const NOISE_MS = 400
const CONTROL = 'control'
/** Tolerance for the clocks of two processes and the delay of a signal. */
const MARGIN_MS = 50
/** An answer is judged after this delay, when the control of the same time has reported. */
const JUDGE_AFTER_MS = 1_500

/** Probes `/livez` of every broker each 250 ms, and checks the time of answers of brokers that ran all the time. */
export class Liveness {
  readonly #record: Recorder
  readonly #brokers: readonly Broker[]
  readonly #children: ChildProcess[]
  readonly #times = new Map<string, number[]>()
  #pending: Sample[] = []
  #controls: Sample[] = []
  noisy = 0
  /** Probes of brokers that were down or stopped at the time. */
  disturbed = 0
  readonly #timer: NodeJS.Timeout

  private constructor(record: Recorder, brokers: readonly Broker[], children: ChildProcess[]) {
    this.#record = record
    this.#brokers = brokers
    this.#children = children
    this.#timer = setInterval(() => this.#judge(), 500)
    children[1]!.on('message', (sample: Sample) => {
      if (sample.target === CONTROL) {
        this.#controls.push(sample)
        this.#note(sample)
      } else this.#pending.push(sample)
    })
  }

  static async start(record: Recorder, brokers: readonly Broker[]): Promise<Liveness> {
    const options = { execArgv: ['--import', 'tsx'] }
    const control = remembered(fork(PROBE, [], options))
    const [port] = (await once(control, 'message')) as [number]
    const targets = brokers.flatMap((broker) => [broker.name, `http://127.0.0.1:${broker.adminPort}/livez`])
    const probe = remembered(fork(PROBE, [CONTROL, `http://127.0.0.1:${port}/`, ...targets], options))
    return new Liveness(record, brokers, [control, probe])
  }

  #note({ target, from, to }: Sample): void {
    const times = this.#times.get(target) ?? []
    times.push(to - from)
    this.#times.set(target, times)
  }

  #judge(): void {
    const now = Date.now()
    const due = this.#pending.filter(({ to }) => now - to > JUDGE_AFTER_MS)
    this.#pending = this.#pending.filter((sample) => !due.includes(sample))
    for (const sample of due) {
      const { target, from, to, status } = sample
      const broker = this.#brokers.find(({ name }) => name === target)!
      if (!broker.process.ranThrough(from - MARGIN_MS, to + MARGIN_MS)) {
        this.disturbed++
        continue
      }
      if (to - from <= LIMIT_MS && status === 200) {
        this.#note(sample)
        continue
      }
      const noise = Math.max(
        0,
        ...this.#controls.filter((one) => one.from <= to + 500 && one.to >= from - 500).map((one) => one.to - one.from),
      )
      if (noise > NOISE_MS) {
        this.noisy++
        continue
      }
      this.#note(sample)
      this.#record.violation(
        `liveness within ${LIMIT_MS} ms`,
        `${target}: ${status || 'no answer'} after ${to - from} ms (a program that does nothing: ${noise} ms)`,
        from - 2_000,
      )
    }
    this.#controls = this.#controls.filter(({ to }) => now - to < 60_000)
  }

  /** One line for each target. */
  summary(): string[] {
    return [...this.#times].map(([target, unsorted]) => {
      const times = unsorted.toSorted((a, b) => a - b)
      const at = (q: number) => times[Math.round(q * (times.length - 1))]
      return `/livez of ${target.padEnd(8)}: ${times.length} asked, ms: p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${at(1)}`
    })
  }

  async end(): Promise<void> {
    clearInterval(this.#timer)
    this.#judge()
    await Promise.all(
      this.#children.map(async (child) => {
        const exited = once(child, 'exit')
        child.kill('SIGKILL')
        await exited
      }),
    )
  }
}
