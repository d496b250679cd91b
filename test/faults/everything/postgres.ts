import { type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import {
  accessSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import { findBinaries } from '../../../lib/db/embedded/binaries.ts'
import { openPool } from '../../../lib/db/open-pool.ts'
import { freePort, Supervised } from './process.ts'
import type { Recorder } from './record.ts'

const READY_WITHIN_MS = 120_000
const RESTART_MS = 500

/** Settings that docs/operations.md requires behind a pooler that drops the settings of sessions. */
const ROLE_SETTINGS = {
  statement_timeout: "'30s'",
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}

/** PostgreSQL and PgBouncer refuse to run as root. As root they run as `nobody`, in a folder that belongs to it. */
export function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const [, , uid, gid] = /^nobody:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? []
  if (!uid || !gid) throw new Error('run as root, this needs a user "nobody" to run PostgreSQL as')
  return { uid: Number(uid), gid: Number(gid) }
}

export function owned(folder: string): string {
  mkdirSync(folder, { mode: 0o700 })
  const { uid, gid } = account()
  if (uid !== undefined) chownSync(folder, uid, gid!)
  return folder
}

/** The programs of the newest release on this machine, or those installed by npm. */
function programs(): { postgres: string; initdb: string } {
  const base = '/usr/lib/postgresql'
  try {
    for (const release of readdirSync(base).sort((a, b) => Number(b) - Number(a))) {
      const found = { postgres: join(base, release, 'bin/postgres'), initdb: join(base, release, 'bin/initdb') }
      accessSync(found.postgres)
      return found
    }
  } catch {}
  return findBinaries()
}

export class Server {
  readonly port: number
  readonly data: string
  readonly process: Supervised

  private constructor(port: number, data: string, program: string, record: Recorder) {
    this.port = port
    this.data = data
    const options: SpawnOptions = {
      ...account(),
      env: { LC_ALL: 'C', PATH: process.env.PATH },
      stdio: ['ignore', 'ignore', 'ignore'],
    }
    const settings = {
      port: String(port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: '150',
      shared_buffers: '128MB',
      max_wal_size: '2GB',
      timezone: 'UTC',
    }
    const args = ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
    this.process = new Supervised({
      name: 'postmaster',
      launch: () => {
        const child = spawn(program, args, options)
        void this.#announce(child.pid!)
        return child
      },
      restartMs: () => RESTART_MS,
      // A start fails while a backend of the previous server still runs, and is repeated.
      onUnexpected: (how, wasReady) => wasReady && record.print(`the postmaster ended ${how}`),
    })
  }

  static async start(folder: string, record: Recorder): Promise<Server> {
    const { postgres, initdb } = programs()
    const data = owned(join(folder, 'data'))
    const made = spawnSync(initdb, ['-D', data, '-U', 'storm', '--encoding=UTF8', '--locale=C', '--auth=trust'], {
      ...account(),
      env: { LC_ALL: 'C', PATH: process.env.PATH },
      encoding: 'utf8',
    })
    if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`)
    const server = new Server(await freePort(), data, postgres, record)
    server.process.start()
    await server.untilReady()
    await server.direct(async (sql) => {
      await sql.unsafe('create role broker login')
      await sql.unsafe('create database broker owner broker')
      for (const [name, value] of Object.entries(ROLE_SETTINGS)) {
        await sql.unsafe(`alter role broker in database broker set ${name} = ${value}`)
      }
    }, 'postgres')
    return server
  }

  async #announce(pid: number): Promise<void> {
    while (this.process.child?.pid !== pid || this.process.child.exitCode === null) {
      const answers = await this.direct((sql) => sql`select 1`, 'postgres', 2_000).catch(() => null)
      if (this.process.child?.pid !== pid) return
      if (answers) return this.process.ready()
      await delay(100)
    }
  }

  async untilReady(): Promise<void> {
    const limit = Date.now() + READY_WITHIN_MS
    while (!this.process.isReady) {
      if (Date.now() > limit) throw new Error('PostgreSQL did not start')
      await delay(50)
    }
  }

  /** Runs `work` as the superuser on a direct connection, without the pooler. Rejects after `limitMs`. */
  async direct<T>(work: (sql: postgres.Sql) => Promise<T>, database = 'broker', limitMs = 30_000): Promise<T> {
    const sql = openPool(`postgres://storm@127.0.0.1:${this.port}/${database}`, {
      max: 1,
      fetch_types: false,
      connect_timeout: 0,
      onnotice: () => {},
    })
    let limit: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      limit = setTimeout(() => reject(new Error('no answer in time')), limitMs)
    })
    try {
      return await Promise.race([work(sql), late])
    } finally {
      clearTimeout(limit)
      void sql.end({ timeout: 0 }).catch(() => {})
    }
  }

  /** Process ids of the sessions of brokers. */
  backends(): Promise<number[]> {
    return this.direct(
      async (sql) =>
        (await sql<{ pid: number }[]>`select pid from pg_stat_activity where usename = 'broker' order by pid`).map(
          ({ pid }) => pid,
        ),
      'postgres',
      5_000,
    )
  }

  /** Process ids of this server that still run, also without their parent (empty except on Linux). */
  leftovers(): number[] {
    const found: number[] = []
    if (!existsSync('/proc/self/cwd')) return found
    for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
      try {
        if (readlinkSync(`/proc/${name}/cwd`) === this.data) found.push(Number(name))
      } catch {}
    }
    return found
  }
}

/** PgBouncer in transaction mode, in front of `upstreamPort`. */
export async function startPooler(
  folder: string,
  upstreamPort: number,
  record: Recorder,
): Promise<{ process: Supervised; port: number }> {
  const port = await freePort()
  if (spawnSync('pgbouncer', ['--version']).error)
    throw new Error('PgBouncer is needed: no program "pgbouncer" in PATH')
  const home = owned(join(folder, 'pooler'))
  writeFileSync(join(home, 'users.txt'), '"broker" ""\n', { mode: 0o644 })
  const lines = [
    '[databases]',
    `broker = host=127.0.0.1 port=${upstreamPort} dbname=broker`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${join(home, 'users.txt')}`,
    'pool_mode = transaction',
    'max_client_conn = 500',
    'default_pool_size = 40',
    // The defaults are long: 15 s after a failed login, and 120 s for a statement without a connection.
    'server_login_retry = 1',
    'query_wait_timeout = 15',
    'log_connections = 0',
    'log_disconnections = 0',
    'log_pooler_errors = 0',
  ]
  writeFileSync(join(home, 'pgbouncer.ini'), `${lines.join('\n')}\n`, { mode: 0o644 })
  const supervised = new Supervised({
    name: 'pooler',
    launch: () => {
      const child = spawn('pgbouncer', ['-q', join(home, 'pgbouncer.ini')], {
        ...account(),
        stdio: ['ignore', 'ignore', 'ignore'],
      })
      child.once('spawn', () => supervised.ready())
      return child
    },
    restartMs: () => RESTART_MS,
    onUnexpected: (how) => record.print(`the pooler ended ${how}`),
  })
  supervised.start()
  return { process: supervised, port }
}
