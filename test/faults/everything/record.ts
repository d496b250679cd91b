/** The record of the run: one line for each fault, and all violations. */
import { readFileSync } from 'node:fs'

const MAX_PRINTED_VIOLATIONS = 200

export interface Fault {
  name: string
  from: number
  to: number | null
}

export class Recorder {
  readonly faults: Fault[] = []
  readonly violations = new Map<string, number>()
  /** Counts of replies by status; missing replies are `lost`, with the reason. */
  readonly statuses = new Map<string, number>()
  readonly startedAt = Date.now()
  /** True after the last fault, when no request may fail. */
  quiet = false
  #printed = 0

  print(text: string): void {
    process.stdout.write(`${((Date.now() - this.startedAt) / 1_000).toFixed(1).padStart(7)} s  ${text}\n`)
  }

  begin(name: string): Fault {
    const fault: Fault = { name, from: Date.now(), to: null }
    this.faults.push(fault)
    this.print(`fault: ${name}`)
    return fault
  }

  end(fault: Fault): void {
    fault.to = Date.now()
  }

  get active(): Fault[] {
    return this.faults.filter(({ to }) => to === null)
  }

  /** Faults under way at any time from `fromMs` to `toMs`. */
  during(fromMs: number, toMs = Date.now()): string {
    const names = this.faults
      .filter(({ from, to }) => from <= toMs && (to ?? toMs) >= fromMs)
      .map(({ name, from, to }) => {
        const ago = ((toMs - from) / 1_000).toFixed(1)
        return `${name} (${ago} s before${to === null ? '' : `, over ${((toMs - to) / 1_000).toFixed(1)} s before`})`
      })
    return names.length > 0 ? names.join('; ') : 'no fault'
  }

  violation(rule: string, detail: string, sinceMs = Date.now() - 2_000): void {
    this.violations.set(rule, (this.violations.get(rule) ?? 0) + 1)
    if (this.#printed++ === MAX_PRINTED_VIOLATIONS) this.print('(further violations are only counted)')
    if (this.#printed > MAX_PRINTED_VIOLATIONS) return
    this.print(`VIOLATED ${rule}: ${detail}; at ${new Date().toISOString()}; during: ${this.during(sinceMs)}`)
  }

  count(status: string): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
  }
}

/** Random numbers from a seed, so that the faults of a run can be repeated. */
export class Dice {
  #state: number
  constructor(seed: number) {
    this.#state = seed >>> 0
  }
  /** From 0 up to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  between(from: number, to: number): number {
    return from + this.next() * (to - from)
  }
  int(from: number, to: number): number {
    return Math.floor(this.between(from, to + 1))
  }
  pick<T>(of: readonly T[]): T {
    return of[Math.floor(this.next() * of.length)]!
  }
}

/** Stolen processor time since the last call, in percent; `?` if the system does not report it. */
export function createStealMeter(): () => string {
  const read = () => {
    try {
      const [, ...ticks] = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/).map(Number)
      return { all: ticks.slice(0, 8).reduce((sum, one) => sum + one, 0), stolen: ticks[7]! }
    } catch {
      return null
    }
  }
  let before = read()
  return () => {
    const [from, to] = [before, read()]
    before = to
    return from && to ? `${((100 * (to.stolen - from.stolen)) / Math.max(1, to.all - from.all)).toFixed(1)} %` : '?'
  }
}
