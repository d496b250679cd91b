import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EmbeddedUnavailable } from './binaries.ts'
import { bringUp, finishStopping, type Running, type Site } from './bring-up.ts'
import type { Membership } from './brokers.ts'
import { isPostmaster, readPidFile } from './pid-file.ts'

const LOOK_MS = 1_000
const STUCK_STOPPING_LOOKS = 5
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 10_000
const STEADY_MS = 60_000

export interface Supervisor {
  readonly running: Running
  /** Rejects with `EmbeddedUnavailable` when the data is gone from its folder, and the supervision ends. Else it never settles. */
  readonly gone: Promise<never>
  /** Ends the supervision, a restart under way included; the server itself is left alone. */
  stop(): Promise<void>
}

/**
 * Keeps a server running that this process or another one started: an exit of our own child is seen at once, that of
 * another process's within a second, and that of the guardian as well. Holds no process open.
 */
export function supervise(site: Site, membership: Membership, first: Running, abort: AbortController): Supervisor {
  let running = first
  let upSince = Date.now()
  let quickDeaths = 0
  let stoppingLooks = 0
  let recovery: Promise<void> | undefined
  let lose: (error: Error) => void = () => {}
  const gone = new Promise<never>((_, reject) => {
    lose = reject
  })
  gone.catch(() => {}) // nobody may be waiting

  const timer = setInterval(look, LOOK_MS).unref()
  follow()

  function follow(): void {
    running.ended?.then(look)
  }

  function look(): void {
    if (abort.signal.aborted) return
    if (!existsSync(join(site.cluster, 'PG_VERSION'))) {
      clearInterval(timer)
      abort.abort()
      lose(
        new EmbeddedUnavailable(
          `DATA_DIR: the data in ${site.cluster} is gone while the broker runs: bring it back and start again`,
        ),
      )
      return
    }
    membership.keepGuarded()
    if (recovery) return
    const file = readPidFile(site.cluster)
    const isUp = file?.pid === running.pid && isPostmaster(file.pid, site.cluster)
    stoppingLooks = isUp && file.status === 'stopping' ? stoppingLooks + 1 : 0
    if (stoppingLooks === STUCK_STOPPING_LOOKS) finishStopping(running.pid)
    if (!isUp) recovery = recover().finally(() => (recovery = undefined))
  }

  async function recover(): Promise<void> {
    site.log.warn({ pid: running.pid }, 'embedded PostgreSQL: the server is gone, starting it again')
    quickDeaths = Date.now() - upSince < STEADY_MS ? quickDeaths + 1 : 0
    while (!abort.signal.aborted) {
      try {
        // The first restart does not wait; a server that keeps dying does, ever longer.
        if (quickDeaths > 1) await delay(backoffMs(quickDeaths), undefined, { signal: abort.signal, ref: false })
        running = await bringUp(site, abort.signal)
        upSince = Date.now()
        site.log.info({ pid: running.pid }, 'embedded PostgreSQL: up again')
        return follow()
      } catch (error) {
        if (abort.signal.aborted) return
        quickDeaths += 1
        site.log.warn({ error: (error as Error).message }, 'embedded PostgreSQL: the restart failed')
      }
    }
  }

  return {
    get running() {
      return running
    },
    gone,
    async stop() {
      abort.abort()
      clearInterval(timer)
      await recovery
    },
  }
}

function backoffMs(deaths: number): number {
  return Math.min(BACKOFF_MIN_MS * 2 ** (deaths - 2), BACKOFF_MAX_MS)
}
