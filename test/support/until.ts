import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'

/** Asks until the answer is truthy, and returns it. A question that throws counts as "not yet". */
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

/** Asks until the answer is the expected one: of what is given a moment only, a busy machine may take that for itself now and then. */
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
 * Gives `attempt` ever more time, from so many milliseconds to half a minute, until it succeeds: for a limit of the program that is the
 * subject and that a busy machine may use up before anything has happened. What is wrong stays wrong with any limit.
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
