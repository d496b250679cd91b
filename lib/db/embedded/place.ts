/**
 * Where the cluster of a data folder lives: in the folder itself, unless root starts the server and the account that runs it
 * cannot get there, as below root's home; then in a folder of its own that root shares with that account alone.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { serverAccount } from './account.ts'
import { EmbeddedUnavailable } from './binaries.ts'
import { removeAbandonedDrafts } from './drafts.ts'
import { createLauncher, type Launcher } from './launcher.ts'
import { isPostmaster, readPidFile } from './pid-file.ts'
import { ensureSharedFolder } from './shared-folder.ts'
import { shortDigest } from './short-digest.ts'

export interface Place {
  /** Absolute, without links: holds `postgres`, the folder of its socket, and the sign of who uses it. */
  home: string
  launcher: Launcher
}

/** What we put into a data folder. */
const OURS = /^postgres($|-socket$|-brokers$|\.new-|\.before-)/

const PASSABLE_BY_ALL = 0o001

const ENTERS = 'test -x "$1"'

/**
 * @param dataDir absolute, without links, and there
 * @param base the folder that root shares, see `ensureSharedFolder`
 * @param launch how the server will be started; for tests
 * @throws EmbeddedUnavailable when there is no such place
 */
export function choosePlace(dataDir: string, base: string, account = serverAccount, launch = createLauncher): Place {
  const inside = join(dataDir, 'postgres')
  const launcher = launch(account(inside))
  if (launcher.account === undefined) return { home: dataDir, launcher }

  const linked = sharedHome(inside, base)
  const shared = linked ?? join(base, 'data', shortDigest(dataDir))
  const isShared = existsSync(join(shared, 'postgres', 'PG_VERSION'))
  const isInside = linked === undefined && existsSync(join(inside, 'PG_VERSION'))
  if (linked === undefined && (isInside || !isShared) && (isReachable(dataDir, isInside, launcher) || runs(inside)))
    return { home: dataDir, launcher }
  if (isInside && isShared)
    throw new EmbeddedUnavailable(
      `there is a cluster in ${inside}, where ${launcher.account.name} cannot reach it, and one in ${shared}: keep one of the two`,
    )

  const home = ensureSharedFolder(base, 'data', basename(shared))
  writeFileSync(join(home, 'origin'), `The data of the broker whose DATA_DIR is ${dataDir}\n`)
  if (isInside) move(inside, join(home, 'postgres'), launcher)
  link(inside, join(home, 'postgres'))
  return { home, launcher: isShared || isInside ? launch(account(join(home, 'postgres'))) : launcher }
}

/** The home that the link in a data folder names, if it is one of ours. */
function sharedHome(inside: string, base: string): string | undefined {
  if (!lstatSync(inside, { throwIfNoEntry: false })?.isSymbolicLink()) return undefined
  const target = readlinkSync(inside)
  return dirname(dirname(target)) === join(base, 'data') ? dirname(target) : undefined
}

/**
 * Whether the account can get to the data folder. One that holds nothing but what we put there, each closed for itself, is
 * opened for passing where that is all it takes: `mktemp -d` and a strict umask make folders that only we can enter.
 */
function isReachable(dataDir: string, isInside: boolean, launcher: Launcher): boolean {
  if (launcher.finds(ENTERS, isInside ? join(dataDir, 'postgres') : dataDir)) return true
  const { uid, mode } = statSync(dataDir)
  if (
    uid !== process.getuid?.() ||
    !readdirSync(dataDir).every((name) => OURS.test(name)) ||
    !launcher.finds(ENTERS, dirname(dataDir))
  )
    return false
  chmodSync(dataDir, mode | PASSABLE_BY_ALL)
  return launcher.finds(ENTERS, isInside ? join(dataDir, 'postgres') : dataDir)
}

function runs(cluster: string): boolean {
  const file = readPidFile(cluster)
  return file !== undefined && isPostmaster(file.pid, cluster)
}

/** Moves a cluster that nobody runs. To another file system it is copied, and the original stays under another name. */
function move(from: string, to: string, launcher: Launcher): void {
  if (!isStillThere(from, to)) return
  if (lstatSync(from).isSymbolicLink())
    throw new EmbeddedUnavailable(`${from} leads to a folder that ${launcher.account!.name} cannot reach`)
  try {
    renameSync(from, to)
  } catch (error) {
    if (!isStillThere(from, to)) return
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    copy(from, to)
    if (isStillThere(from, to)) renameSync(from, `${from}.before-move`)
  }
}

/** Another process may have been faster, and put its link there. */
function isStillThere(from: string, to: string): boolean {
  const stat = lstatSync(from, { throwIfNoEntry: false })
  return stat !== undefined && !(stat.isSymbolicLink() && readlinkSync(from) === to)
}

function copy(from: string, to: string): void {
  removeAbandonedDrafts(to)
  const draft = mkdtempSync(`${to}.new-`)
  try {
    // Owners and modes are kept, and it is on the disk before it counts.
    for (const [program, ...args] of [['cp', '-a', `${from}/.`, draft], ['sync']] as const) {
      const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
      if (status !== 0)
        throw new EmbeddedUnavailable(`${from} cannot be copied to ${draft} (${error?.message ?? stderr.trim()})`)
    }
    renameSync(draft, to)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(join(to, 'PG_VERSION'))) throw error
  }
}

/** A way to the data for people and their tools, and for a data folder that is moved. */
function link(inside: string, cluster: string): void {
  try {
    symlinkSync(cluster, inside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
