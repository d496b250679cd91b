import { setTimeout as delay } from 'node:timers/promises'

/** A timer this late shows that the machine was too busy. */
const MAX_LAG_MS = 250
const EVERY_MS = 20
const ATTEMPTS = 5

/**
 * Runs a test that depends on a time fixed in the program, such as the seconds in which a stopping server still
 * answers. A failure while the machine stood still proves nothing, so the test runs again.
 */
export async function undisturbed(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    let last = Date.now()
    let lagMs = 0
    const watch = setInterval(() => {
      const now = Date.now()
      lagMs = Math.max(lagMs, now - last - EVERY_MS)
      last = now
    }, EVERY_MS)
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || lagMs < MAX_LAG_MS) throw error
    } finally {
      clearInterval(watch)
    }
    await delay(1_000)
  }
}
