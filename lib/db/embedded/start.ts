/** Makes a cluster and starts its server. */
import type { ChildProcess } from 'node:child_process'
import { chownSync, lstatSync, mkdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Log } from '../../observability/log.ts'
import { within } from '../../time/within.ts'
import { readPidFile } from './attach.ts'
import { EmbeddedUnavailable } from './binaries.ts'
import { makeWhole, shortDigest } from './folders.ts'
import type { Launcher } from './root.ts'

/** The superuser of an embedded cluster. Authentication is `trust`: only the folder of the socket protects it. */
export const SUPERUSER = 'broker'
export const PORT = 5432

const TAIL_LINES = 20
const LAST_LINES_MS = 200

/** The output of a server program, and its end. */
export interface Output {
  /** The last lines, joined with ` | `. */
  tail(): string
  /** Undefined after exit code 0, else the reason. Never rejects. */
  ended: Promise<string | undefined>
}

/** Passes each line of stdout and stderr on and keeps the last ones for an error text. */
export function readOutput(child: ChildProcess, onLine: (line: string) => void): Output {
  const lines: string[] = []
  for (const stream of [child.stdout!, child.stderr!])
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      if (lines.length > TAIL_LINES) lines.shift()
      onLine(line)
    })
  const ended = new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => {
      const end = () => resolve(code === 0 ? undefined : signal ? `signal ${signal}` : `exit code ${code}`)
      // The last lines give the reason, but backends that outlive a killed server keep the pipes open.
      child.once('close', end)
      setTimeout(end, LAST_LINES_MS)
    })
  })
  return { tail: () => lines.join(' | '), ended }
}

/** Makes the cluster folder unless it exists. */
export function ensureCluster(cluster: string, initdb: string, launcher: Launcher, log: Log): Promise<void> {
  return makeWhole(cluster, join(cluster, 'PG_VERSION'), async (draft) => {
    if (launcher.account) chownSync(draft, launcher.account.uid, launcher.account.gid)
    const args = ['-D', draft, '-U', SUPERUSER, '--encoding=UTF8', '--locale=C', '--auth=trust', '--no-instructions']
    const output = readOutput(launcher.spawn(initdb, args), (line) => log.debug({}, line))
    const failure = await output.ended
    if (failure)
      throw new EmbeddedUnavailable(
        `the embedded PostgreSQL cannot create its cluster in ${draft} (${failure}): ${output.tail()}`,
      )
    log.debug({ folder: cluster }, 'embedded PostgreSQL: new cluster')
  })
}

const POLL_MS = 10

// Another process won the start, or backends of a killed server are still ending. Both pass.
const PASSING_FAILURE = /lock file|pre-existing shared memory block/

/**
 * Starts a server and waits until it is ready, crash recovery included. Of several processes that try, PostgreSQL lets
 * one hold `postmaster.pid`; a dead process cannot hold it.
 * @param onClaimed called when the server holds the cluster
 * @returns the process id; undefined when the cluster is taken for now, or after an abort
 * @throws EmbeddedUnavailable with the server's message when it cannot start
 */
export async function startPostmaster(
  program: string,
  cluster: string,
  socketDir: string,
  { launcher, log, signal, onClaimed }: { launcher: Launcher; log: Log; signal: AbortSignal; onClaimed: () => void },
): Promise<number | undefined> {
  const child = launcher.spawn(program, ['-D', cluster, '-p', String(PORT), ...settings(socketDir)])
  const output = readOutput(child, (line) => log.debug({}, line))
  let hasEnded = false
  const ended = output.ended.finally(() => (hasEnded = true))
  const abort = () => child.kill('SIGINT')
  signal.addEventListener('abort', abort)
  let isClaimed = false
  try {
    while (!hasEnded) {
      const file = readPidFile(cluster)
      if (child.pid !== undefined && file?.pid === child.pid) {
        if (!isClaimed) onClaimed()
        isClaimed = true
        if (file.status === 'ready') {
          release(child)
          return child.pid
        }
      }
      await within(ended, POLL_MS)
    }
  } finally {
    signal.removeEventListener('abort', abort)
  }
  const failure = await ended
  if (signal.aborted || PASSING_FAILURE.test(output.tail())) return undefined
  throw new EmbeddedUnavailable(`the embedded PostgreSQL did not start (${failure ?? 'it stopped'}): ${output.tail()}`)
}

/** Lets our process end while the child runs on. */
function release(child: ChildProcess): void {
  child.unref()
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
}

function settings(socketDir: string): string[] {
  const values = {
    listen_addresses: '',
    // The value is a list; the quotes keep a comma or blank in the path.
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: '200',
    shared_buffers: '256MB',
    max_wal_size: '4GB',
    checkpoint_timeout: '15min',
    autovacuum_naptime: '15s',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_min_messages: 'warning',
    // Statements and DETAIL lines hold data of the cluster, which must not reach a log.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

// The size of sockaddr_un.sun_path without its terminating zero.
const MAX_SOCKET_PATH_BYTES = process.platform === 'linux' ? 107 : 103
const PRIVATE = 0o700
const OPEN_TO_OTHERS = 0o077

/**
 * The folder of the socket: inside `home`, or in the temporary folder where the path is too long for a socket address.
 */
export function socketDir(home: string, launcher: Launcher): string {
  const inside = join(home, 'postgres-socket')
  if (Buffer.byteLength(`${inside}/.s.PGSQL.${PORT}`) <= MAX_SOCKET_PATH_BYTES) return inside
  // Root may have a temporary folder that is closed to others.
  const temporary = launcher.account && !launcher.succeeds('test -x "$1"', tmpdir()) ? '/tmp' : tmpdir()
  return join(temporary, `broker-${shortDigest(home)}`)
}

/**
 * Makes the folder of the socket with mode 0700. Everybody may create names in the temporary folder, so an existing one
 * is checked.
 */
export function ensureSocketDir(folder: string, { account }: Launcher): void {
  const ourUid = process.getuid?.()
  const uid = account?.uid ?? ourUid
  try {
    mkdirSync(folder, { mode: PRIVATE })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const stat = lstatSync(folder)
  const isOurs = stat.isDirectory() && (stat.uid === uid || stat.uid === ourUid) && (stat.mode & OPEN_TO_OTHERS) === 0
  if (!isOurs)
    throw new EmbeddedUnavailable(
      `the socket folder ${folder} is not a folder of mode 0700 that belongs to user ${uid}`,
    )
  if (account && stat.uid !== account.uid) chownSync(folder, account.uid, account.gid)
}
