import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../observability/log.ts'
import { classify, DatabaseBusy, DatabaseUnavailable } from '../errors.ts'
import { openPool, withConnectTimeout } from '../open-pool.ts'
import { type Binaries, EmbeddedUnavailable } from './binaries.ts'
import type { Launcher } from './launcher.ts'
import { release } from './output.ts'
import { disownPidFile, isPostmaster, readPidFile } from './pid-file.ts'
import { startPostmaster } from './postmaster.ts'
import { ensureSocketDir, type SocketOptions } from './socket.ts'

/** What it takes to run the server of one data folder. */
export interface Site {
  /** Absolute, without links: the folder of the cluster and of its socket. */
  home: string
  /** The cluster's folder inside it. */
  cluster: string
  binaries: Binaries
  launcher: Launcher
  /** Where to connect; follows the server when another process put its socket elsewhere. */
  options: SocketOptions
  log: Log
}

/** A server that accepts connections. `ended` is there only if this process started it, and settles when it is gone. */
export interface Running {
  pid: number
  ended?: Promise<string | undefined>
}

/** Crash recovery may replay all of max_wal_size. */
const READY_LIMIT_MS = 5 * 60_000
const STUCK_STOPPING_MS = 5_000
const LOOK_MIN_MS = 25
const LOOK_MAX_MS = 500

/**
 * Attaches to the running server or starts one, whichever the lock file allows, and looks again until one of the two
 * worked: losing a race ends in attaching, and a start waits for the backends of a killed server to leave.
 * @param abort ends the attempt, and a server that is just starting
 * @throws EmbeddedUnavailable when it cannot start or is not ready in time
 */
export async function bringUp(site: Site, abort: AbortSignal): Promise<Running> {
  const limit = Date.now() + READY_LIMIT_MS
  let stoppingSince: number | undefined
  for (let wait = LOOK_MIN_MS; Date.now() < limit; wait = Math.min(wait * 1.5, LOOK_MAX_MS)) {
    const found = readPidFile(site.cluster)
    if (found && isPostmaster(found.pid, site.cluster)) {
      const server = {
        ...site.options,
        host: found.socketDir || site.options.host,
        port: found.port || site.options.port,
      }
      if (found.status === 'ready' && (await accepts(server))) {
        Object.assign(site.options, server)
        return { pid: found.pid }
      }
      stoppingSince = found.status === 'stopping' ? (stoppingSince ?? Date.now()) : undefined
      if (stoppingSince && Date.now() - stoppingSince > STUCK_STOPPING_MS) finishStopping(found.pid)
    } else {
      if (found) disownPidFile(site.cluster, found)
      const started = await start(site, abort)
      if (started) return started
    }
    abort.throwIfAborted()
    await delay(wait)
  }
  throw new EmbeddedUnavailable(
    `the embedded PostgreSQL in ${site.cluster} is not ready after ${READY_LIMIT_MS / 1000} s`,
  )
}

/** Whether the server answers a statement; anything but a database that is unavailable or busy is thrown. */
export async function accepts(server: SocketOptions): Promise<boolean> {
  const sql = openPool(
    { ...server },
    { max: 1, fetch_types: false, prepare: false, connect_timeout: 0, onnotice: () => {} },
  )
  try {
    await withConnectTimeout(sql`select 1`)
    return true
  } catch (error) {
    const problem = classify(error)
    if (problem instanceof DatabaseUnavailable || problem instanceof DatabaseBusy) return false
    throw problem
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function start(site: Site, abort: AbortSignal): Promise<Running | undefined> {
  const socketDir = ensureSocketDir(site.home, site.launcher)
  const started = await startPostmaster(site.binaries.postgres, site.cluster, socketDir, site.launcher, site.log, abort)
  if (!started) return undefined
  release(started.child)
  site.options.host = socketDir
  return { pid: started.pid, ended: started.ended }
}

/**
 * A SIGTERM to the process group makes the server refuse newcomers and wait for its clients to go, for ever if they
 * stay. The processes that stay need a new server, so the wait is cut short.
 */
export function finishStopping(pid: number): void {
  try {
    process.kill(pid, 'SIGINT')
  } catch {}
}
