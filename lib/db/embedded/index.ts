/**
 * A PostgreSQL server of our own for installations without DATABASE_URL. Its data lives under a folder and outlives the
 * process; every process with that folder shares one server. PostgreSQL's own lock file decides who starts it, the
 * last process out stops it, a guardian does when that one was killed, and when it dies any process that still needs it starts it
 * again.
 */
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Log } from '../../observability/log.ts'
import { type Binaries, EmbeddedUnavailable, findBinaries } from './binaries.ts'
import { bringUp, type Site } from './bring-up.ts'
import { joinBrokers } from './brokers.ts'
import { ensureCluster, SUPERUSER } from './cluster.ts'
import { makeFolder } from './make-folder.ts'
import { choosePlace } from './place.ts'
import { reachablePrograms } from './programs.ts'
import { SHARED_FOLDER } from './shared-folder.ts'
import { shutdown } from './shutdown.ts'
import { PORT, type SocketOptions, socketDir, socketUrl } from './socket.ts'
import { type Supervisor, supervise } from './supervisor.ts'

export { EmbeddedUnavailable } from './binaries.ts'
export type { SocketOptions } from './socket.ts'

export interface EmbeddedServer {
  /** libpq form of `options`. Of the driver's entry points only `openPool` reads it. */
  readonly url: string
  /** For the driver: spread it into its options. */
  readonly options: SocketOptions
  /** Whether another process started the server that runs now. */
  readonly attached: boolean
  /** The postmaster's. */
  readonly pid: number
  /** Rejects when the data is gone from its folder while it runs: nothing starts the server again. Else it never settles. */
  readonly gone: Promise<never>
  /**
   * Ends the supervision, and the server too unless another process called `startEmbedded` for it and did not stop yet. Whoever
   * else is connected then is cut. End our own pools first.
   * Calling it again is harmless, and so is a server that is already gone.
   */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  /** Created where missing. */
  dataDir: string
  log: Log
  /** Gives the start up, however far it is, and throws the reason. */
  signal?: AbortSignal
}

/**
 * Starts the server of `dataDir`, or attaches to the one that runs there, and keeps it running until `stop()`. When it throws,
 * nothing is left running. Takes about 50 ms, a second for a new cluster.
 * @throws EmbeddedUnavailable when this machine cannot run it; the message names DATABASE_URL as the way out
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const installed = findBinaries()
  try {
    return await start(installed, options)
  } catch (error) {
    if (error instanceof EmbeddedUnavailable && !error.message.includes('DATA_DIR'))
      error.message = `DATA_DIR: ${error.message}`
    // Of the file system: read-only, full, another user's.
    const { code, syscall, message } = error as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw error
    throw new EmbeddedUnavailable(`DATA_DIR: ${options.dataDir} cannot be used (${message})`, { cause: error })
  }
}

async function start(installed: Binaries, { dataDir, log, signal }: EmbeddedOptions): Promise<EmbeddedServer> {
  const folder = ensureDataDir(dataDir)
  const { home, launcher } = choosePlace(folder, SHARED_FOLDER)
  const binaries = reachablePrograms(installed, launcher, SHARED_FOLDER)
  const moved = {
    ...(home !== folder && { data: home }),
    ...(binaries !== installed && { programs: dirname(dirname(binaries.postgres)) }),
  }
  if (Object.keys(moved).length > 0)
    log.info(
      { user: launcher.account?.name, dataDir: folder, ...moved },
      'embedded PostgreSQL: its user cannot enter our folder, so this lives elsewhere',
    )

  const cluster = join(home, 'postgres')
  const options: SocketOptions = { host: socketDir(home, launcher), port: PORT, user: SUPERUSER, database: 'postgres' }
  const site: Site = { home, cluster, binaries, launcher, options, log }
  const abort = new AbortController()
  const giveUp = () => abort.abort()
  signal?.addEventListener('abort', giveUp)
  const membership = joinBrokers(home, cluster, launcher)
  let known: Supervisor | undefined
  const supervisor = await begin()
    .catch(async (error) => {
      await leave()
      signal?.throwIfAborted()
      throw error
    })
    .finally(() => signal?.removeEventListener('abort', giveUp))
  known = supervisor

  async function begin() {
    signal?.throwIfAborted()
    await ensureCluster(cluster, binaries.initdb, launcher, log)
    signal?.throwIfAborted()
    const first = await bringUp(site, abort.signal)
    signal?.throwIfAborted()
    return supervise(site, membership, first, abort)
  }

  /** Whether no server runs any more. */
  async function leave(): Promise<boolean> {
    if (!membership.leave()) return shutdown(site, known?.running.pid)
    log.info({}, 'embedded PostgreSQL: left running for others')
    return false
  }

  let stopped: Promise<void> | undefined

  async function stop(): Promise<void> {
    // The child and its pipes hold no process open, so without this one could end in the middle.
    const hold = setInterval(() => {}, 1_000)
    try {
      await supervisor.stop()
      if (await leave()) await supervisor.running.ended
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
    gone: supervisor.gone,
    stop: () => (stopped ??= stop()),
  }
}

/** The folder, absolute and without links. */
function ensureDataDir(dataDir: string): string {
  try {
    makeFolder(dataDir)
  } catch (error) {
    const { code, path = dataDir } = error as NodeJS.ErrnoException
    throw new EmbeddedUnavailable(
      `DATA_DIR: ${path} cannot be made (${code}); choose a folder that this user can write to`,
      {
        cause: error,
      },
    )
  }
  return realpathSync(dataDir)
}
