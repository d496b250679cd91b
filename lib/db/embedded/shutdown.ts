import { setTimeout as delay } from 'node:timers/promises'
import type { Site } from './bring-up.ts'
import { isPostmaster, readPidFile } from './pid-file.ts'

const FAST_MS = 30_000
const IMMEDIATE_MS = 5_000
const POLL_MS = 20

/**
 * Stops the server of `site`, whoever started it. `lastPid` is the one to stop where the folder no longer tells. Returns whether none runs any
 * more.
 */
export async function shutdown(site: Site, lastPid?: number): Promise<boolean> {
  const { cluster, log } = site
  const file = readPidFile(cluster) ?? (lastPid === undefined ? undefined : { pid: lastPid })
  if (!file || !isPostmaster(file.pid, cluster)) return true

  for (const [signal, limitMs] of [
    ['SIGINT', FAST_MS],
    ['SIGQUIT', IMMEDIATE_MS], // This loses nothing: the next start recovers from the log.
  ] as const) {
    try {
      process.kill(file.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPERM') {
        log.warn({ pid: file.pid }, 'embedded PostgreSQL: left running, it belongs to another user')
        return false
      }
    }
    const limit = Date.now() + limitMs
    while (isPostmaster(file.pid, cluster) && Date.now() < limit) await delay(POLL_MS)
    if (!isPostmaster(file.pid, cluster)) return true
  }
  log.warn({ pid: file.pid }, 'embedded PostgreSQL: does not stop')
  return false
}
