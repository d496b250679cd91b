/** The programs of a fail-over: which are missing, and how they are started and ended. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Account, serverAccount } from '../../../lib/db/embedded/root.ts'
import { readOutput } from '../../../lib/db/embedded/start.ts'
import { until } from '../../support/until.ts'

/** The program of each Debian package. Not all accounts have /usr/sbin in their path. */
const PACKAGES = { 'etcd-server': 'etcd', patroni: 'patroni', haproxy: 'haproxy', pgbouncer: 'pgbouncer' }
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/sbin']
const RELEASES = '/usr/lib/postgresql'

type Name = (typeof PACKAGES)[keyof typeof PACKAGES]

const find = (name: Name) => FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path))

/** The folder of the programs of the newest PostgreSQL. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(RELEASES)) return undefined
  const releases = readdirSync(RELEASES).sort((a, b) => Number(b) - Number(a))
  return releases.map((release) => join(RELEASES, release, 'bin')).find((bin) => existsSync(join(bin, 'pg_rewind')))
}

/** A reason to skip the test, or false. */
export function missingPackages(): string | false {
  const missing = Object.entries(PACKAGES).flatMap(([name, program]) => (find(program) ? [] : [name]))
  if (postgresPrograms() === undefined) missing.push('postgresql')
  return missing.length > 0 && `needs these packages of Debian: ${missing.join(', ')}`
}

export interface Program {
  readonly pid: number
  /** The last lines of its output. */
  tail(): string
  /** Sends a signal, and SIGKILL if the program does not end; resolves when it has ended. */
  end(signal: NodeJS.Signals): Promise<void>
}

const END_MS = 15_000

/** Starts programs as an account that PostgreSQL accepts, with files that belong to it. */
export class Programs {
  /** Undefined for the account of this process. */
  readonly #account: Account | undefined
  readonly #folder: string

  /** `folder` is empty, and others may enter it. */
  constructor(folder: string) {
    this.#folder = folder
    this.#account = serverAccount(join(folder, 'none'))
    this.#own(folder)
  }

  #own(path: string): void {
    if (this.#account) chownSync(path, this.#account.uid, this.#account.gid)
  }

  makeFolder(name: string): string {
    const path = join(this.#folder, name)
    mkdirSync(path, { mode: 0o700 })
    this.#own(path)
    return path
  }

  writeFile(name: string, text: string): string {
    const path = join(this.#folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    this.#own(path)
    return path
  }

  /** In our process group, which is killed when a run of tests is stopped. */
  start(name: Name, args: string[]): Program {
    const { uid, gid } = this.#account ?? {}
    const child = spawn(find(name)!, args, {
      ...(uid !== undefined && gid !== undefined ? { uid, gid } : {}),
      cwd: '/',
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const killed = () => child.kill('SIGKILL')
    process.once('exit', killed)
    const output = readOutput(child, () => {})
    void output.ended.then(() => process.removeListener('exit', killed))
    return { pid: child.pid!, tail: output.tail, end: (signal) => end(child, signal) }
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  if (hasEnded()) return
  child.kill(signal)
  await until('the program ends', hasEnded, END_MS).catch(() => child.kill('SIGKILL'))
  await until('the program is gone', hasEnded)
}

/** Ids of the processes that work in a folder, as all processes of a PostgreSQL do. Zombies do not count. */
export function processesIn(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      try {
        return readlinkSync(`/proc/${id}/cwd`) === folder && !/\) Z /.test(readFileSync(`/proc/${id}/stat`, 'utf8'))
      } catch {
        return false
      }
    })
    .map(Number)
}

export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {} // It has ended meanwhile.
  }
}
