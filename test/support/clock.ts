import type { TestContext } from 'node:test'

export interface Clock {
  /** Advances timers and `performance.now`. */
  tick(ms: number): void
  /** Restores real time; happens automatically at the end of the test. */
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
 * Stops `performance.now` for the rest of the test file, while timers run, so that no call seems slow on a busy
 * machine. This is no mock, because a mock remembers every call.
 */
export function holdClock(): void {
  // Not 0, because earlier times were already read.
  const now = performance.now()
  performance.now = () => now
}

/**
 * Stops `performance.now` and timers that are set from now on; `tick` advances them. Input, output and timers of 0 ms
 * still run: the driver opens connections with them, and the mock timers of `node:test` would stop them.
 */
export function stopClock(t: TestContext): Clock {
  // An integer, so that sums and differences are exact.
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
