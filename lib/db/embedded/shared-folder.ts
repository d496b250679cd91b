import { chmodSync, lstatSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { EmbeddedUnavailable } from './binaries.ts'
import { makeFolder } from './make-folder.ts'

/** The folder is kept over a reboot and open to every user, and nobody but root can put anything there. */
export const SHARED_FOLDER = '/var/lib/cluster-telemetry-broker'

/** What other users may do with our folders: pass through, if they know the name of what is inside. */
const PASSABLE = 0o711
const WRITABLE_BY_OTHERS = 0o022

/**
 * Makes a folder below `base`, and `base` itself, where missing, and sees to it that they are ours, closed to the writing and
 * open to the passing of others.
 * @returns its path
 * @throws EmbeddedUnavailable when somebody else controls it, or it cannot be made
 */
export function ensureSharedFolder(base: string, ...names: string[]): string {
  try {
    makeFolder(dirname(base))
    assertOurs(dirname(base))
    let folder = base
    ensure(folder)
    for (const name of names) {
      folder = join(folder, name)
      ensure(folder)
    }
    return folder
  } catch (error) {
    if (error instanceof EmbeddedUnavailable) throw error
    const message = (error as Error).message
    throw new EmbeddedUnavailable(
      `the embedded PostgreSQL needs a folder that its user can enter, and ${base} cannot be made (${message}): choose a DATA_DIR that is such a folder`,
      { cause: error },
    )
  }
}

function ensure(folder: string): void {
  try {
    mkdirSync(folder, { mode: PASSABLE })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const { mode } = assertOurs(folder)
  if ((mode & PASSABLE) !== PASSABLE) chmodSync(folder, mode | PASSABLE)
}

/** What anybody else could exchange is not ours to trust: our server would run what they put there. */
function assertOurs(folder: string) {
  const stat = lstatSync(folder)
  if (stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & WRITABLE_BY_OTHERS) === 0) return stat
  throw new EmbeddedUnavailable(
    `the folder ${folder} is not a folder that only user ${process.getuid?.()} may write to`,
  )
}
