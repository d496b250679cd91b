import { setTimeout as delay } from 'node:timers/promises'

/** A timer that comes so late tells that this machine had no time for us. */
const MAX_LAG_MS = 250
const EVERY_MS = 20
const ATTEMPTS = 5

/**
 * Runs a test of what others see within a time that is fixed in the program, as the seconds in which a server that is told to stop goes on
 * answering. Where it fails and the machine stood still meanwhile it has shown nothing, and is run again.
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
