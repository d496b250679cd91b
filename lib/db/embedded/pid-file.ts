import { execFileSync } from 'node:child_process'
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'

/** What a postmaster says about itself in `postmaster.pid` (src/include/utils/pidfile.h). */
export interface PidFile {
  pid: number
  socketDir: string
  port: number
  status: 'starting' | 'stopping' | 'ready' | 'standby' | 'unknown'
}

/** The postmaster that claims a cluster, or undefined when none does; it may be long dead. */
export function readPidFile(cluster: string): PidFile | undefined {
  let text: string
  try {
    text = readFileSync(join(cluster, 'postmaster.pid'), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const lines = text.split('\n').map((line) => line.trim())
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  const status = lines[7] as PidFile['status']
  const known = ['starting', 'stopping', 'ready', 'standby'].includes(status)
  return { pid, port: Number(lines[3] ?? 0), socketDir: lines[4] ?? '', status: known ? status : 'unknown' }
}

/**
 * Whether `pid` is the running postmaster of `cluster`. After a reboot the number may belong to any other program, and
 * a killed postmaster stays as a zombie under an init that does not reap: both count as gone.
 */
export function isPostmaster(pid: number, cluster: string): boolean {
  if (!exists(pid)) return false
  try {
    return process.platform === 'linux' ? isPostmasterOnLinux(pid, cluster) : commandOf(pid).endsWith('postgres')
  } catch {
    return false
  }
}

function isPostmasterOnLinux(pid: number, cluster: string): boolean {
  const stat = /\((.*)\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  if (stat?.[1] !== 'postgres' || stat[2] === 'Z' || stat[2] === 'X') return false
  const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  const isBackend = args[0]?.startsWith('postgres: ')
  if (isBackend) return false
  const folder = args[args.indexOf('-D') + 1]
  return !folder || !isAbsolute(folder) || folder === cluster || folder === realpathSync(cluster)
}

function commandOf(pid: number): string {
  return execFileSync('ps', ['-p', String(pid), '-o', 'comm='], { encoding: 'utf8' }).trim()
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Frees a stale pid file whose number is taken by something that is no postmaster. PostgreSQL refuses to start while
 * that number is alive, except when it is its own parent's: so ours is written in its place. The rest of the file
 * stays, because the shared memory named there is PostgreSQL's proof that no old backend still writes.
 */
export function disownPidFile(cluster: string, stale: PidFile): void {
  if (!exists(stale.pid)) return
  const file = join(cluster, 'postmaster.pid')
  const [pid, ...rest] = readFileSync(file, 'utf8').split('\n')
  if (Number(pid) === stale.pid) writeFileSync(file, [process.pid, ...rest].join('\n'))
}
