/** Finds the running server of a data folder, tells who owns it, and stops it. */
import { execFileSync } from 'node:child_process'
import { readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../observability/log.ts'
import { classify, DatabaseBusy, DatabaseUnavailable } from '../errors.ts'
import { openPool, withConnectTimeout } from '../open-pool.ts'

/** Where a server listens on a unix socket; the `postgres` driver takes it as it is. */
export interface SocketOptions {
  /** The socket's folder, absolute. */
  host: string
  port: number
  user: string
  database: string
}

/** The parts of `postmaster.pid`, which PostgreSQL writes (src/include/utils/pidfile.h). */
export interface PidFile {
  pid: number
  socketDir: string
  port: number
  /** `starting`, `stopping`, `ready` or `standby`; empty at first. */
  status: string
}

/** The process that claims a cluster, which may be dead; undefined when none does. */
export function readPidFile(cluster: string): PidFile | undefined {
  const text = readIfThere(join(cluster, 'postmaster.pid'))
  const [pid, , , port = '', socketDir = '', , , status = ''] = text.split('\n').map((line) => line.trim())
  if (!/^[1-9]\d*$/.test(pid!)) return undefined
  return { pid: Number(pid), port: Number(port), socketDir, status }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/**
 * Whether `pid` is the running server of `cluster`. Two cases count as gone: after a reboot the number may belong to
 * another program, and a killed server stays as a zombie under an init that does not reap.
 */
export function isPostmaster(pid: number, cluster: string): boolean {
  if (!isAlive(pid)) return false
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-p', String(pid), '-o', 'comm='], { encoding: 'utf8' })
        .trim()
        .endsWith('postgres')
    const [, name, state] = /\((.*)\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    if (name !== 'postgres' || state === 'Z' || state === 'X') return false
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    if (args[0]?.startsWith('postgres: ')) return false // a backend
    const folder = args[args.indexOf('-D') + 1]
    return !folder || !isAbsolute(folder) || folder === cluster || folder === realpathSync(cluster)
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Frees a stale `postmaster.pid` whose number another program has now. PostgreSQL refuses to start while that process
 * lives, except when it is its own parent, so our number takes its place. The rest of the file stays: it names the
 * shared memory by which PostgreSQL detects backends of the old server.
 */
export function freePidFile(cluster: string, stale: PidFile): void {
  if (!isAlive(stale.pid)) return
  const file = join(cluster, 'postmaster.pid')
  const [pid, ...rest] = readIfThere(file).split('\n')
  if (Number(pid) === stale.pid) writeFileSync(file, [process.pid, ...rest].join('\n'))
}

/** Whether the server answers a statement. Throws errors other than of a database that is unavailable or busy. */
export async function accepts(server: SocketOptions): Promise<boolean> {
  const sql = openPool(
    { ...server },
    { max: 1, fetch_types: false, prepare: false, connect_timeout: 0, onnotice: () => {} },
  )
  try {
    await withConnectTimeout(sql`select 1`)
    return true
  } catch (error) {
    const problem = classify(error)
    if (problem instanceof DatabaseUnavailable || problem instanceof DatabaseBusy) return false
    throw problem
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/**
 * The file `postgres-owner` names the process that stops the server: the one that started it or, after that was killed,
 * the first that attached. A process number that another program has taken over leaves a server without an owner; it
 * runs on.
 */
const ownerFile = (home: string) => join(home, 'postgres-owner')

/** Whether `owner`, a text that begins with a process id, owns the server. */
export const isOwner = (home: string, owner: string): boolean => readIfThere(ownerFile(home)) === owner

/** Makes `owner` the owner, in one step: of several writers the last one is. */
export function takeOwnership(home: string, owner: string): void {
  const draft = `${ownerFile(home)}.${process.pid}`
  writeFileSync(draft, owner)
  renameSync(draft, ownerFile(home))
}

/** Makes `owner` the owner if the present one is dead. */
export function adoptOrphan(home: string, owner: string): void {
  const pid = Number.parseInt(readIfThere(ownerFile(home)), 10)
  if (!(pid > 0) || !isAlive(pid)) takeOwnership(home, owner)
}

const FAST_STOP_MS = 30_000
const IMMEDIATE_STOP_MS = 5_000
const POLL_MS = 20

/** Stops the server with this process id and waits until it is gone. */
export async function stopServer(pid: number, cluster: string, log: Log): Promise<void> {
  // After SIGQUIT nothing is lost either: the next start recovers from the write-ahead log.
  for (const [signal, limitMs] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
  ] as const) {
    if (!isPostmaster(pid, cluster)) return
    signalServer(pid, signal)
    const limit = Date.now() + limitMs
    while (isPostmaster(pid, cluster) && Date.now() < limit) await delay(POLL_MS)
  }
  if (isPostmaster(pid, cluster)) log.warn({ pid }, 'embedded PostgreSQL: does not stop')
}

/** Does nothing when the server is gone or belongs to another user. */
export function signalServer(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {}
}
