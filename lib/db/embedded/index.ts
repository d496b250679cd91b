/**
 * A PostgreSQL server for installations without DATABASE_URL. Its data lives in a folder and is kept between runs.
 *
 * Every process with that folder shares one server: the first one starts it and the others attach. The owner stops the
 * server when it ends: the process that started it or, after that was killed, the first that attached. Each process
 * checks twice a second that the server runs and starts it again when it is gone; so when the owner ends under an
 * attached process, that one loses its connections, is without a database for about a second, and then owns a new
 * server.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../observability/log.ts'
import {
  accepts,
  adoptOrphan,
  freePidFile,
  isOwner,
  isPostmaster,
  readPidFile,
  type SocketOptions,
  signalServer,
  stopServer,
  takeOwnership,
} from './attach.ts'
import { EmbeddedUnavailable, findBinaries } from './binaries.ts'
import { makeFolder } from './folders.ts'
import { chooseHome, createLauncher, type Launcher, runnableBinaries, serverAccount } from './root.ts'
import { ensureCluster, ensureSocketDir, PORT, SUPERUSER, socketDir, startPostmaster } from './start.ts'

export type { SocketOptions } from './attach.ts'
export { EmbeddedUnavailable } from './binaries.ts'

export interface EmbeddedServer {
  /** The libpq form of `options`: the folder percent-encoded in place of the host. */
  readonly url: string
  /** For the driver: to be spread into its options. */
  readonly options: SocketOptions
  /** Whether another process started the server that runs now. */
  readonly attached: boolean
  /** The server's process id. */
  readonly pid: number
  /**
   * Rejects when the data is gone from its folder; nothing starts the server again then. Otherwise it never settles.
   */
  readonly gone: Promise<never>
  /** Ends the checks, and the server too if this process owns it. End our own pools first. May be called again. */
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  /** Created where missing. */
  dataDir: string
  log: Log
  /** Ends the start at any point, and throws the reason. */
  signal?: AbortSignal
}

/** Crash recovery may replay all of max_wal_size. */
const READY_LIMIT_MS = 5 * 60_000
const RETRY_MIN_MS = 25
const RETRY_MAX_MS = 500
const CHECK_MS = 500

/**
 * Starts the server of `dataDir`, or attaches to the running one, and keeps it running until `stop()`. After a failure
 * nothing is left running. Takes about 50 ms, and a second for a new cluster.
 * @throws EmbeddedUnavailable when this machine cannot run it; the message names DATA_DIR or DATABASE_URL
 */
export async function startEmbedded({ dataDir, log, signal }: EmbeddedOptions): Promise<EmbeddedServer> {
  const installed = findBinaries()
  try {
    const folder = ensureDataDir(dataDir)
    const launcher = createLauncher(serverAccount(join(folder, 'postgres')))
    const home = chooseHome(folder, launcher)
    const binaries = await runnableBinaries(installed, launcher)
    if (home !== folder || binaries !== installed)
      log.info(
        { user: launcher.account?.name, dataDir: folder, data: home, programs: dirname(binaries.postgres) },
        'embedded PostgreSQL: its user cannot enter our folder, so this lives elsewhere',
      )
    const server = new Server(home, binaries.postgres, launcher, log)
    await server.start(binaries.initdb, signal)
    return server
  } catch (error) {
    if (error instanceof EmbeddedUnavailable && !error.message.includes('DATA_DIR'))
      error.message = `DATA_DIR: ${error.message}`
    // Errors of the file system: it is read-only or full, or the folder belongs to another user.
    const { code, syscall, message } = error as NodeJS.ErrnoException
    if (code === undefined || syscall === undefined) throw error
    throw new EmbeddedUnavailable(`DATA_DIR: ${dataDir} cannot be used (${message})`, { cause: error })
  }
}

/** Makes the folder; returns it absolute and without links. */
function ensureDataDir(dataDir: string): string {
  try {
    makeFolder(dataDir)
    return realpathSync(dataDir)
  } catch (error) {
    const { code, path = dataDir } = error as NodeJS.ErrnoException
    const message = `DATA_DIR: ${path} cannot be made (${code}); choose a folder that this user can write to`
    throw new EmbeddedUnavailable(message, { cause: error })
  }
}

class Server implements EmbeddedServer {
  attached = false
  pid = 0
  readonly options: SocketOptions
  readonly gone: Promise<never>
  #lose: (error: Error) => void = () => {}
  readonly #home: string
  readonly #cluster: string
  readonly #program: string
  readonly #launcher: Launcher
  readonly #log: Log
  /** Names this instance in the owner file. */
  readonly #owner = `${process.pid} ${randomUUID()}`
  readonly #abort = new AbortController()
  #checks: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(home: string, program: string, launcher: Launcher, log: Log) {
    this.#home = home
    this.#cluster = join(home, 'postgres')
    this.#program = program
    this.#launcher = launcher
    this.#log = log
    this.options = { host: socketDir(home, launcher), port: PORT, user: SUPERUSER, database: 'postgres' }
    this.gone = new Promise<never>((_, reject) => {
      this.#lose = reject
    })
    this.gone.catch(() => {}) // Nobody may be waiting.
  }

  get url() {
    const { host, port, user, database } = this.options
    return `postgresql://${user}@${encodeURIComponent(host)}:${port}/${database}`
  }

  async start(initdb: string, signal?: AbortSignal): Promise<void> {
    const abort = () => this.#abort.abort()
    signal?.addEventListener('abort', abort)
    try {
      signal?.throwIfAborted()
      await ensureCluster(this.#cluster, initdb, this.#launcher, this.#log)
      signal?.throwIfAborted()
      await this.#bringUp()
      signal?.throwIfAborted()
      this.#checks = this.#check()
    } catch (error) {
      await this.stop()
      signal?.throwIfAborted()
      throw error
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#abort.abort()
    await this.#checks
    const file = existsSync(this.#home) ? readPidFile(this.#cluster) : undefined
    // The file is gone with the folder, and only its starter knows the server then.
    const pid = file === undefined && !this.attached ? this.pid : file?.pid
    const isOurs = existsSync(this.#home) ? isOwner(this.#home, this.#owner) : !this.attached
    if (pid && isOurs) await stopServer(pid, this.#cluster, this.#log)
    else if (pid && isPostmaster(pid, this.#cluster))
      this.#log.info({ pid }, 'embedded PostgreSQL: left running for its owner')
  }

  /**
   * Attaches to the running server or starts one, and repeats until one of the two succeeds: after a lost race it
   * attaches, and a start waits for the backends of a killed server to end.
   */
  async #bringUp(): Promise<void> {
    const limit = Date.now() + READY_LIMIT_MS
    for (let wait = RETRY_MIN_MS; Date.now() < limit; wait = Math.min(wait * 1.5, RETRY_MAX_MS)) {
      const file = readPidFile(this.#cluster)
      if (file && isPostmaster(file.pid, this.#cluster)) {
        const { host, port } = this.options
        const server = { ...this.options, host: file.socketDir || host, port: file.port || port }
        if (file.status === 'ready' && (await accepts(server))) {
          Object.assign(this.options, server)
          adoptOrphan(this.#home, this.#owner)
          Object.assign(this, { pid: file.pid, attached: true })
          return
        }
        // After a SIGTERM the server waits for its clients to leave, without end if they stay.
        if (file.status === 'stopping') signalServer(file.pid, 'SIGINT')
      } else {
        if (file) freePidFile(this.#cluster, file)
        const pid = await this.#startServer()
        if (pid !== undefined) {
          Object.assign(this, { pid, attached: false })
          return
        }
      }
      this.#abort.signal.throwIfAborted()
      await delay(wait)
    }
    throw new EmbeddedUnavailable(
      `the embedded PostgreSQL in ${this.#cluster} is not ready after ${READY_LIMIT_MS / 1000} s`,
    )
  }

  async #startServer(): Promise<number | undefined> {
    const host = socketDir(this.#home, this.#launcher)
    ensureSocketDir(host, this.#launcher)
    const pid = await startPostmaster(this.#program, this.#cluster, host, {
      launcher: this.#launcher,
      log: this.#log,
      signal: this.#abort.signal,
      onClaimed: () => takeOwnership(this.#home, this.#owner),
    })
    if (pid !== undefined) this.options.host = host
    return pid
  }

  /** Holds no process open. Never rejects. */
  async #check(): Promise<void> {
    const { signal } = this.#abort
    const pause = () => delay(CHECK_MS, undefined, { signal, ref: false }).catch(() => {})
    for (await pause(); !signal.aborted; await pause()) {
      if (!existsSync(join(this.#cluster, 'PG_VERSION'))) {
        const message = `DATA_DIR: the data in ${this.#cluster} is gone while the broker runs`
        this.#lose(new EmbeddedUnavailable(`${message}: bring it back and start again`))
        return
      }
      try {
        const file = readPidFile(this.#cluster)
        const isSame = file?.pid === this.pid && file.status !== 'stopping'
        if (isSame && isPostmaster(file.pid, this.#cluster)) continue
        this.#log.warn({ pid: this.pid }, 'embedded PostgreSQL: the server is gone, starting it again')
        await this.#bringUp()
        this.#log.info({ pid: this.pid }, 'embedded PostgreSQL: up again')
      } catch (error) {
        if (!signal.aborted)
          this.#log.warn({ error: (error as Error).message }, 'embedded PostgreSQL: the restart failed')
      }
    }
  }
}
