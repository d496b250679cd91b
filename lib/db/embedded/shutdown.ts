import { setTimeout as delay } from 'node:timers/promises'
import type { Site } from './bring-up.ts'
import { isPostmaster, readPidFile } from './pid-file.ts'
import { countClients } from './probe.ts'

const CLIENTS_LEAVING_MS = 1_000 // a backend outlives its client's last message by a moment
const FAST_MS = 30_000
const IMMEDIATE_MS = 5_000
const POLL_MS = 20

/** Stops the server of `site`, whoever started it, unless clients are connected. Returns whether none runs any more. */
export async function shutdownIfUnused(site: Site): Promise<boolean> {
  const { cluster, options, log } = site
  const file = readPidFile(cluster)
  if (!file || !isPostmaster(file.pid, cluster)) return true

  const clientsLimit = Date.now() + CLIENTS_LEAVING_MS
  for (let clients = await countClients(options); clients > 0; clients = await countClients(options)) {
    if (Date.now() > clientsLimit) {
      log('info', 'embedded PostgreSQL: left running for its other clients', { pid: file.pid, clients })
      return false
    }
    await delay(POLL_MS)
  }

  for (const [signal, limitMs] of [
    ['SIGINT', FAST_MS],
    ['SIGQUIT', IMMEDIATE_MS], // loses nothing: the next start recovers from the log
  ] as const) {
    try {
      process.kill(file.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EPERM') {
        log('warn', 'embedded PostgreSQL: left running, it belongs to another user', { pid: file.pid })
        return false
      }
    }
    const limit = Date.now() + limitMs
    while (isPostmaster(file.pid, cluster) && Date.now() < limit) await delay(POLL_MS)
    if (!isPostmaster(file.pid, cluster)) return true
  }
  log('warn', 'embedded PostgreSQL: does not stop', { pid: file.pid })
  return false
}
