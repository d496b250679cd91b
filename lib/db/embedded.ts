/**
 * A PostgreSQL server of our own for installations without DATABASE_URL. Its data lives under a folder and outlives the
 * process; every process with that folder shares one server. PostgreSQL's own lock file decides who starts it, the
 * last process out stops it, and when it dies any process that still needs it starts it again.
 */
import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { findBinaries } from './embedded/binaries.ts'
import { bringUp, type Site } from './embedded/bring-up.ts'
import { ensureCluster, SUPERUSER } from './embedded/cluster.ts'
import { createLauncher } from './embedded/launcher.ts'
import type { Log } from './embedded/log.ts'
import { shutdownIfUnused } from './embedded/shutdown.ts'
import { PORT, socketDir } from './embedded/socket.ts'
import { type SocketOptions, socketUrl } from './embedded/socket-url.ts'
import { supervise } from './embedded/supervisor.ts'

export { EmbeddedUnavailable } from './embedded/binaries.ts'
export { greeted } from './embedded/greeting.ts'
export type { Log } from './embedded/log.ts'
export { openPool, type SocketOptions, socketUrl } from './embedded/socket-url.ts'

export interface EmbeddedServer {
  /** libpq form of `options`. Of the driver's entry points only `openPool` reads it. */
  readonly url: string
  /** For the driver: spread it into its options. */
  readonly options: SocketOptions
  /** Whether another process started the server that runs now. */
  readonly attached: boolean
  /** The postmaster's. */
  readonly pid: number
  /**
   * Ends the supervision, and the server too unless other clients are connected. End our own pools first.
   * Calling it again is harmless, and so is a server that is already gone.
   */
  stop(): Promise<void>
}

/**
 * Starts the server of `dataDir`, or attaches to the one that runs there, and keeps it running until `stop()`.
 * Creates the folder where missing. Takes about 50 ms, a second for a new cluster.
 * @throws EmbeddedUnavailable when this machine cannot run it; the message names DATABASE_URL as the way out
 */
export async function startEmbedded({ dataDir, log }: { dataDir: string; log: Log }): Promise<EmbeddedServer> {
  const binaries = findBinaries()
  mkdirSync(dataDir, { recursive: true })
  const home = realpathSync(dataDir)
  const cluster = join(home, 'postgres')
  const launcher = createLauncher(cluster)
  await ensureCluster(cluster, binaries.initdb, launcher, log)

  const options: SocketOptions = { host: socketDir(home), port: PORT, user: SUPERUSER, database: 'postgres' }
  const site: Site = { dataDir: home, cluster, binaries, launcher, options, log }
  const abort = new AbortController()
  const first = await bringUp(site, abort.signal)
  const supervisor = supervise(site, first, abort)
  let stopped: Promise<void> | undefined

  async function stop(): Promise<void> {
    // The child and its pipes hold no process open, so without this one could end in the middle.
    const hold = setInterval(() => {}, 1_000)
    try {
      await supervisor.stop()
      if (await shutdownIfUnused(site)) await supervisor.running.ended
    } finally {
      clearInterval(hold)
    }
  }

  return {
    get url() {
      return socketUrl(options)
    },
    options,
    get attached() {
      return supervisor.running.ended === undefined
    },
    get pid() {
      return supervisor.running.pid
    },
    stop: () => (stopped ??= stop()),
  }
}
