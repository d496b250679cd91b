/**
 * The PostgreSQL of this machine, with server and client programs of one release. The embedded one has no pg_dump, and
 * a pg_dump of an older release refuses the server. The role `broker` is the owner, as in the image of PostgreSQL.
 */
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after } from 'node:test'
import { createLauncher, serverAccount } from '../../lib/db/embedded/root.ts'
import { ensureCluster, readOutput, SUPERUSER } from '../../lib/db/embedded/start.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { freePort } from '../support/free-port.ts'
import { noLog } from '../support/log.ts'
import { until } from '../support/until.ts'

export interface SystemPostgres {
  readonly port: number
  /** The folder of its socket, which needs no password. */
  readonly socketFolder: string
  /** The folder of the programs. */
  readonly programs: string
  /** The password over TCP. */
  readonly password: string
}

const PROGRAMS = ['postgres', 'initdb', 'pg_dump', 'pg_restore', 'psql', 'createdb', 'dropdb', 'pg_isready']
/** Where Debian, Red Hat and Homebrew install each release, the newest last. */
const PLACES = ['/usr/lib/postgresql', '/usr/pgsql', '/opt/homebrew/opt', '/usr/local/opt']
const OLDEST_MAJOR = 15

/** The folder with all the programs; undefined if there is none. */
export function findPrograms(): string | undefined {
  const releases = PLACES.filter((place) => existsSync(place)).flatMap((place) =>
    readdirSync(place)
      .filter((name) => Number(/\d+$/.exec(name)?.[0]) >= OLDEST_MAJOR)
      .sort()
      .map((name) => join(place, name, 'bin')),
  )
  const folders = [...releases.reverse(), ...(process.env.PATH ?? '').split(delimiter)]
  return folders.find((folder) => PROGRAMS.every((name) => existsSync(join(folder, name))))
}

const running: (() => Promise<void>)[] = []
after(() => Promise.all(running.map((stop) => stop())))

/** Starts a server with an empty database `broker`; it ends with the test file. */
export async function startSystemPostgres(programs: string, password: string): Promise<SystemPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'broker-system-'))
  const cluster = join(folder, 'cluster')
  const launcher = createLauncher(serverAccount(cluster))
  const own = (path: string) => {
    if (launcher.account) chownSync(path, launcher.account.uid, launcher.account.gid)
  }
  own(folder)
  await ensureCluster(cluster, join(programs, 'initdb'), launcher, noLog)
  const files = join(folder, 'files')
  mkdirSync(files)
  own(files)
  writeFileSync(join(files, 'hba'), 'local all all trust\nhost all all all scram-sha-256\n')
  own(join(files, 'hba'))
  const port = await freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: folder,
    hba_file: join(files, 'hba'),
    fsync: 'off',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = launcher.spawn(join(programs, 'postgres'), ['-D', cluster, ...args])
  process.once('exit', () => child.kill('SIGKILL'))
  const output = readOutput(child, () => {})
  let hasEnded = false
  void output.ended.then(() => {
    hasEnded = true
  })
  running.push(async () => {
    child.kill('SIGINT')
    await output.ended
    rmSync(folder, { recursive: true, force: true })
  })
  const sql = openPool(
    { host: folder, port, user: SUPERUSER, database: 'postgres' },
    { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} },
  )
  const answers = () =>
    sql`select 1`.then(
      () => true,
      () => false,
    )
  await until('the server answers', () => hasEnded || answers())
  if (hasEnded) throw new Error(`the server did not start: ${output.tail()}`)
  await sql.unsafe(`alter role ${SUPERUSER} password '${password}'`)
  await sql.unsafe('create database broker')
  await sql.end({ timeout: 1 })
  return { port, socketFolder: folder, programs, password }
}
