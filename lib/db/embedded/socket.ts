import { createHash } from 'node:crypto'
import { chownSync, lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EmbeddedUnavailable } from './binaries.ts'
import type { Account } from './launcher.ts'

export const PORT = 5432

// sockaddr_un.sun_path less its terminating zero.
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103

/**
 * Makes the folder of the server's socket, mode 0700, and returns its path: inside `dataDir`, or in the system's
 * temporary folder where the path would be too long for a socket address.
 * @param dataDir absolute, without links, so that every process with this folder computes the same name
 */
export function ensureSocketDir(dataDir: string, account: Account | undefined): string {
  const folder = socketDir(dataDir)
  const uid = account?.uid ?? process.getuid?.()
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const stat = lstatSync(folder)
  // Anyone may create names in the temporary folder; a socket folder that another user controls is not ours to trust.
  const isOurs = stat.isDirectory() && (stat.uid === uid || stat.uid === process.getuid?.()) && (stat.mode & 0o077) === 0
  if (!isOurs) throw new EmbeddedUnavailable(`the socket folder ${folder} is not a folder of mode 0700 that belongs to user ${uid}`)
  if (account && stat.uid !== account.uid) chownSync(folder, account.uid, account.gid)
  return folder
}

export function socketDir(dataDir: string): string {
  const inside = join(dataDir, 'postgres-socket')
  if (Buffer.byteLength(`${inside}/.s.PGSQL.${PORT}`) <= MAX_PATH_BYTES) return inside
  return join(tmpdir(), `broker-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`)
}
