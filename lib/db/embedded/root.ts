/**
 * PostgreSQL refuses to run as root. Root starts it under another account; where that account cannot enter the data
 * folder or the folder of the programs, as below /root, they live in a folder that root shares with it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type Binaries, EmbeddedUnavailable } from './binaries.ts'
import { makeFolder, makeWhole, shortDigest } from './folders.ts'

export interface Account {
  uid: number
  gid: number
  name: string
}

// These own no files, have no password and no home. The first that exists is used.
const PREFERRED_ACCOUNTS = ['nobody', 'daemon', 'bin']

/**
 * The account for the server; undefined for the account of this process, which only root must not use. Root uses the
 * owner of an existing cluster, else an account without privileges.
 * @throws EmbeddedUnavailable when there is no other account
 */
export function serverAccount(cluster: string, passwd = '/etc/passwd'): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const owner = statSync(cluster, { throwIfNoEntry: false })
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, name: `user ${owner.uid}` }
  return unprivilegedAccount(passwd)
}

export function unprivilegedAccount(passwd: string): Account {
  const lines = existsSync(passwd) ? readFileSync(passwd, 'utf8').split('\n') : []
  const accounts = lines.flatMap((line): Account[] => {
    const [, name, uid, gid] = /^([^:]+):[^:]*:(\d+):(\d+):/.exec(line) ?? []
    return Number(uid) > 0 ? [{ name: name!, uid: Number(uid), gid: Number(gid) }] : []
  })
  const preferred = PREFERRED_ACCOUNTS.map((wanted) => accounts.find(({ name }) => name === wanted))
  const account = preferred.find(Boolean) ?? accounts[0]
  if (account) return account
  throw new EmbeddedUnavailable(
    `the embedded PostgreSQL cannot run as root and ${passwd} names no other user to run it as`,
  )
}

/** Starts programs under an account that PostgreSQL accepts. */
export interface Launcher {
  /** Undefined for the account of this process. */
  account: Account | undefined
  /** A process with pipes for its output, in a process group of its own: Ctrl-C in our terminal does not reach it. */
  spawn(program: string, args: string[]): ChildProcess
  /** Whether a shell script succeeds under that account; `args` are its $1, $2, ... */
  succeeds(script: string, ...args: string[]): boolean
}

// The server needs nothing else of our environment, and must not get DATABASE_URL or tokens.
const PASSED_ENVIRONMENT = ['PATH', 'HOME', 'TMPDIR', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH']

export function createLauncher(account: Account | undefined): Launcher {
  const passed = PASSED_ENVIRONMENT.filter((name) => process.env[name] !== undefined)
  // LC_ALL, because messages of the server are matched by their text.
  const env = { LC_ALL: 'C', ...Object.fromEntries(passed.map((name) => [name, process.env[name]])) }
  // Not our working directory, which may be closed to the account. Node drops groups and capabilities with the uid.
  const options = { env, cwd: '/', ...(account && { uid: account.uid, gid: account.gid }) }
  return {
    account,
    spawn: (program, args) => spawn(program, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] }),
    succeeds: (script, ...args) =>
      spawnSync('/bin/sh', ['-c', script, 'sh', ...args], { ...options, stdio: 'ignore' }).status === 0,
  }
}

/** Survives reboots, and only root can create entries in /var/lib. */
export const SHARED_FOLDER = '/var/lib/cluster-telemetry-broker'

/** Entries that this service makes in a data folder. */
const OUR_ENTRIES = /^postgres($|-socket$|-owner$|-brokers$|\.new-)/
const CAN_ENTER = 'test -x "$1"'
const ENTERABLE_BY_ALL = 0o001

/**
 * The folder of the cluster and its socket: `dataDir` itself where the account can enter it, else a folder below
 * `base`, to which a link `dataDir/postgres` leads.
 * @param dataDir exists; absolute, without links
 * @throws EmbeddedUnavailable when `dataDir` holds a cluster that the account cannot reach
 */
export function chooseHome(dataDir: string, launcher: Launcher, base = SHARED_FOLDER): string {
  if (launcher.account === undefined) return dataDir
  const inside = join(dataDir, 'postgres')
  const isLink = lstatSync(inside, { throwIfNoEntry: false })?.isSymbolicLink()
  const linked = isLink ? dirname(readlinkSync(inside)) : undefined
  const isShared = linked !== undefined && dirname(linked) === join(base, 'data')
  if (!isShared && makeEnterable(dataDir, launcher)) return dataDir
  if (!isShared && existsSync(join(inside, 'PG_VERSION')))
    throw new EmbeddedUnavailable(
      `DATA_DIR: ${launcher.account.name}, who runs PostgreSQL for root, cannot enter ${inside}: move it elsewhere`,
    )
  const home = sharedFolder(base, 'data', isShared ? linked.slice(base.length + '/data/'.length) : shortDigest(dataDir))
  writeFileSync(join(home, 'origin'), `The data of the broker whose DATA_DIR is ${dataDir}\n`)
  try {
    symlinkSync(join(home, 'postgres'), inside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return home
}

/**
 * Whether the account can enter the data folder. A closed folder of ours is opened for passing when it holds only our
 * entries, each of which has its own protection: `mktemp -d` and a strict umask make folders that only root can enter.
 */
function makeEnterable(dataDir: string, launcher: Launcher): boolean {
  if (launcher.succeeds(CAN_ENTER, dataDir)) return true
  const { uid, mode } = statSync(dataDir)
  if (uid !== process.getuid?.() || !readdirSync(dataDir).every((name) => OUR_ENTRIES.test(name))) return false
  if (!launcher.succeeds(CAN_ENTER, dirname(dataDir))) return false
  chmodSync(dataDir, mode | ENTERABLE_BY_ALL)
  return launcher.succeeds(CAN_ENTER, dataDir)
}

const CAN_RUN = '"$1/bin/postgres" --version && test -x "$1/bin/initdb" && test -r "$1/share/postgresql/postgres.bki"'

/** The programs as installed where the account can run them, else a copy below `base`, made once for each version. */
export async function runnableBinaries(
  installed: Binaries,
  launcher: Launcher,
  base = SHARED_FOLDER,
): Promise<Binaries> {
  const root = dirname(dirname(installed.postgres))
  if (launcher.account === undefined || launcher.succeeds(CAN_RUN, root)) return installed
  const { version } = JSON.parse(readFileSync(join(dirname(root), 'package.json'), 'utf8'))
  const copy = join(sharedFolder(base, 'programs'), `postgres-${version}`)
  await makeWhole(copy, copy, (draft) => {
    cpSync(root, draft, { recursive: true, verbatimSymlinks: true })
    const { status } = spawnSync('chmod', ['-R', 'u=rwX,go=rX', draft], { stdio: 'ignore' })
    if (status !== 0) throw new EmbeddedUnavailable(`the programs in ${draft} cannot be opened to other users`)
  })
  return { postgres: join(copy, 'bin/postgres'), initdb: join(copy, 'bin/initdb') }
}

const PASSABLE = 0o711
const WRITABLE_BY_OTHERS = 0o022

/** Makes `base` and a folder below it which others can pass but not list; the server runs programs from there. */
function sharedFolder(base: string, ...names: string[]): string {
  try {
    makeFolder(dirname(base))
    let folder = base
    for (const name of ['', ...names]) {
      folder = join(folder, name)
      if (!existsSync(folder)) mkdirSync(folder, { mode: PASSABLE })
      const { uid, mode } = lstatSync(folder)
      if (!lstatSync(folder).isDirectory() || uid !== process.getuid?.() || (mode & WRITABLE_BY_OTHERS) !== 0)
        throw new EmbeddedUnavailable(
          `the folder ${folder} is not a folder that only user ${process.getuid?.()} may write to`,
        )
      if ((mode & PASSABLE) !== PASSABLE) chmodSync(folder, mode | PASSABLE)
    }
    return folder
  } catch (error) {
    if (error instanceof EmbeddedUnavailable) throw error
    throw new EmbeddedUnavailable(
      `DATA_DIR: the user of PostgreSQL cannot enter it, and ${base} cannot be made (${(error as Error).message})`,
      { cause: error },
    )
  }
}
