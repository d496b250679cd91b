import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Binaries } from './binaries.ts'
import { removeAbandonedDrafts } from './drafts.ts'
import type { Launcher } from './launcher.ts'
import { ensureSharedFolder } from './shared-folder.ts'
import { shortDigest } from './short-digest.ts'

/** True when the server's account can run the programs of the folder $1 and read what belongs to them. */
const RUNS = '"$1/bin/postgres" --version && test -x "$1/bin/initdb" && test -r "$1/share/postgresql/postgres.bki"'

const RUNNABLE = 0o755
const READABLE = 0o644
const EXECUTABLE = 0o111

/** What only who builds against the server needs. */
const LEFT_OUT = /\.a$|\/(pgxs|pkgconfig)$/

/** The programs where the server's account can run them: as they were installed, else a copy that is made once. */
export function reachablePrograms(installed: Binaries, launcher: Launcher, base: string): Binaries {
  const root = dirname(dirname(installed.postgres))
  if (launcher.account === undefined || launcher.finds(RUNS, root)) return installed
  const copy = copyPrograms(root, ensureSharedFolder(base, 'programs'))
  return { postgres: join(copy, 'bin/postgres'), initdb: join(copy, 'bin/initdb') }
}

interface Entry {
  path: string
  kind: 'folder' | 'file' | 'link'
  /** Size of a file, target of a link. */
  content: string
  executable: boolean
}

/**
 * Copies a folder of programs into `parent`, under a name that says what is in it, and returns the copy's path. A copy that is
 * there already is compared first, and replaced when a file is missing or cut short.
 */
export function copyPrograms(root: string, parent: string): string {
  const entries = list(root)
  const digest = digestOf(entries)
  const copy = join(parent, `postgres-${digest}`)
  if (isWhole(copy, digest)) return copy
  removeAbandonedDrafts(copy)
  const draft = `${copy}.new-${randomBytes(4).toString('hex')}`
  write(root, draft, entries)
  for (;;) {
    try {
      renameSync(draft, copy)
      return copy
    } catch (error) {
      if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
    const isMadeByOther = isWhole(copy, digest)
    if (isMadeByOther) break
    putAside(copy)
  }
  rmSync(draft, { recursive: true, force: true })
  return copy
}

function isWhole(copy: string, digest: string): boolean {
  return lstatSync(copy, { throwIfNoEntry: false }) !== undefined && digestOf(list(copy)) === digest
}

function digestOf(entries: Entry[]): string {
  return shortDigest(entries.map(({ path, kind, content }) => `${kind} ${path} ${content}\n`).join(''))
}

function list(root: string, below = ''): Entry[] {
  const names = readdirSync(join(root, below)).sort()
  return names.flatMap((name): Entry[] => {
    const path = `${below}/${name}`
    if (LEFT_OUT.test(path)) return []
    const stat = lstatSync(join(root, path))
    if (stat.isDirectory()) return [{ path, kind: 'folder', content: '', executable: true }, ...list(root, path)]
    if (stat.isSymbolicLink())
      return [{ path, kind: 'link', content: readlinkSync(join(root, path)), executable: true }]
    return [{ path, kind: 'file', content: String(stat.size), executable: (stat.mode & EXECUTABLE) !== 0 }]
  })
}

/** Copies the entries: others may read and run, and only we may write, whatever the umask and the modes of the original. */
function write(root: string, draft: string, entries: Entry[]): void {
  const folder = (path: string) => {
    mkdirSync(path)
    chmodSync(path, RUNNABLE)
  }
  folder(draft)
  for (const { path, kind, content, executable } of entries) {
    const target = join(draft, path)
    if (kind === 'folder') folder(target)
    else if (kind === 'link') symlinkSync(content, target)
    else {
      copyFileSync(join(root, path), target, constants.COPYFILE_FICLONE)
      chmodSync(target, executable ? RUNNABLE : READABLE)
    }
  }
}

/** A server may be running from it still, and keeps what it has open. */
function putAside(copy: string): void {
  const aside = join(dirname(copy), `${basename(copy)}.new-${randomBytes(4).toString('hex')}`)
  try {
    renameSync(copy, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  rmSync(aside, { recursive: true, force: true })
}
