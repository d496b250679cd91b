import type { TestContext } from 'node:test'

export interface Clock {
  /** Moves timers and `performance.now` on. */
  tick(ms: number): void
  /** Real time again; of itself at the end of the test. */
  restart(): void
}

class Timer {
  readonly run: () => void
  readonly everyMs: number | null
  at: number

  constructor(run: () => void, at: number, everyMs: number | null) {
    this.run = run
    this.at = at
    this.everyMs = everyMs
  }

  unref(): this {
    return this
  }

  ref(): this {
    return this
  }
}

/**
 * `performance.now` stands still for the rest of the test file, and timers go on: nothing takes long, however busy the machine. Not by a
 * mock, which remembers every call.
 */
export function holdClock(): void {
  // Not at 0, which is before much of what was noted already.
  const now = performance.now()
  performance.now = () => now
}

/**
 * `performance.now` and timers that are set from now on stand still until they are told to move. Input and output go on, and so do
 * timers of no time, by which the driver opens connections: those of `node:test` would stop them too.
 */
export function stopClock(t: TestContext): Clock {
  // Whole: of others the sum less a part is not the other part.
  let now = Math.ceil(performance.now())
  const timers = new Set<Timer>()
  const real = { setTimeout, setInterval, clearTimeout, clearInterval }
  const set = (run: () => void, ms: number, everyMs: number | null) => {
    const timer = new Timer(run, now + ms, everyMs)
    timers.add(timer)
    return timer as never
  }
  const clear = (timer: never) => {
    if ((timer as unknown) instanceof Timer) timers.delete(timer)
    else real.clearTimeout(timer)
  }
  const mocks = [
    t.mock.method(performance, 'now', () => now),
    t.mock.method(globalThis, 'setTimeout', ((run: () => void, ms = 0, ...args: unknown[]) =>
      ms > 0
        ? set(() => (run as (...args: unknown[]) => void)(...args), ms, null)
        : real.setTimeout(run, 0, ...(args as []))) as never),
    t.mock.method(globalThis, 'setInterval', ((run: () => void, ms = 1) => set(run, ms, ms)) as never),
    t.mock.method(globalThis, 'clearTimeout', clear as never),
    t.mock.method(globalThis, 'clearInterval', clear as never),
  ]
  return {
    tick(ms) {
      const end = now + ms
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (due === undefined) break
        now = Math.max(now, due.at)
        if (due.everyMs === null) timers.delete(due)
        else due.at += due.everyMs
        due.run()
      }
      now = end
    },
    restart() {
      for (const { mock } of mocks) mock.restore()
    },
  }
}
