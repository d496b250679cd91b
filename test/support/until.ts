import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'

/** Polls until the result is truthy, and returns it. An error counts as "not yet". */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  limitMs = 120_000,
): Promise<Exclude<T, false | null | undefined>> {
  const limit = Date.now() + limitMs
  let last: unknown
  while (Date.now() < limit) {
    try {
      const answer = await ask()
      if (answer) return answer as Exclude<T, false | null | undefined>
      last = answer
    } catch (error) {
      last = error
    }
    await delay(20)
  }
  throw new Error(`not within ${limitMs} ms: ${what}`, { cause: last })
}

/** Polls until the result is the expected one, for values that a busy machine may show late. */
export async function becomes(ask: () => unknown, expected: unknown, limitMs = 120_000): Promise<void> {
  const limit = Date.now() + limitMs
  for (;;) {
    const answer = await ask()
    if (isDeepStrictEqual(answer, expected)) return
    if (Date.now() > limit) assert.deepEqual(answer, expected)
    await delay(20)
  }
}

/**
 * Repeats `attempt` with ever longer limits, up to half a minute, until it succeeds. For tests of a limit that a busy
 * machine may use up before anything has happened; a real fault fails with any limit.
 */
export async function withMoreTime(fromMs: number, attempt: (ms: number) => Promise<void>): Promise<void> {
  for (let ms = fromMs; ; ms *= 4) {
    try {
      return await attempt(ms)
    } catch (error) {
      if (ms > 8_000) throw error
    }
  }
}
