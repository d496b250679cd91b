import { chownSync, lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EmbeddedUnavailable } from './binaries.ts'
import type { Launcher } from './launcher.ts'
import { shortDigest } from './short-digest.ts'

export const PORT = 5432

// This is the length of sockaddr_un.sun_path less its terminating zero.
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103

const OURS_ALONE = 0o700
const OPEN_TO_OTHERS = 0o077

/** Where a server listens on a unix socket; accepted as it is by the `postgres` driver. */
export interface SocketOptions {
  /** The socket's folder, absolute. */
  host: string
  port: number
  user: string
  database: string
}

/** The libpq form: the folder percent-encoded in the place of the host. */
export function socketUrl({ host, port, user, database }: SocketOptions): string {
  return `postgresql://${encodeURIComponent(user)}@${encodeURIComponent(host)}:${port}/${encodeURIComponent(database)}`
}

/**
 * Makes the folder of the server's socket, mode 0700, and returns its path: inside `home`, or in the system's
 * temporary folder where the path would be too long for a socket address.
 * @param home absolute, without links, so that every process with this folder computes the same name
 */
export function ensureSocketDir(home: string, launcher: Launcher): string {
  const { account } = launcher
  const folder = socketDir(home, launcher)
  const uid = account?.uid ?? process.getuid?.()
  try {
    mkdirSync(folder, { mode: OURS_ALONE })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const stat = lstatSync(folder)
  // Anyone may create names in the temporary folder; a socket folder that another user controls is not ours to trust.
  const isOurs =
    stat.isDirectory() && (stat.uid === uid || stat.uid === process.getuid?.()) && (stat.mode & OPEN_TO_OTHERS) === 0
  if (!isOurs)
    throw new EmbeddedUnavailable(
      `the socket folder ${folder} is not a folder of mode 0700 that belongs to user ${uid}`,
    )
  if (account && stat.uid !== account.uid) chownSync(folder, account.uid, account.gid)
  return folder
}

export function socketDir(home: string, launcher: Launcher): string {
  const inside = join(home, 'postgres-socket')
  if (Buffer.byteLength(`${inside}/.s.PGSQL.${PORT}`) <= MAX_PATH_BYTES) return inside
  // Root may have a temporary folder that is closed to others.
  const temporary = launcher.account && !launcher.finds('test -x "$1"', tmpdir()) ? '/tmp' : tmpdir()
  return join(temporary, `broker-${shortDigest(home)}`)
}
