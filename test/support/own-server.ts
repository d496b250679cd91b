/** A separate PostgreSQL on a free loopback port, for tests of connections. It ends with the test file. */
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import type postgres from 'postgres'
import { findBinaries } from '../../lib/db/embedded/binaries.ts'
import { createLauncher, runnableBinaries, serverAccount } from '../../lib/db/embedded/root.ts'
import { readOutput, SUPERUSER } from '../../lib/db/embedded/start.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { freePort } from './free-port.ts'
import { copyCluster } from './prepared-cluster.ts'
import { until } from './until.ts'

/**
 * Made with openssl, valid for 100 years: an authority, a server `localhost`, a client `app`, and another authority.
 */
export const certificate = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}`, import.meta.url))

export interface OwnServer {
  readonly port: number
  /** The folder of its unix socket. */
  readonly folder: string
  /** Connected as the superuser, through the unix socket. */
  readonly sql: postgres.Sql
}

const running: (() => Promise<void>)[] = []

// Registered here, since a hook inside another hook would stop the server with that one.
after(() => Promise.all(running.map((stop) => stop())))

/**
 * `hba` are the lines of pg_hba.conf for TCP, by default `host all all all scram-sha-256`. With `tls` the server has
 * the certificate of `localhost` and trusts client certificates of the authority. It has a database and a role `app`
 * with `password`.
 */
export async function startOwnServer({
  tls = false,
  hba = ['host all all all scram-sha-256'],
  password = 'secret',
}: {
  tls?: boolean
  hba?: readonly string[]
  password?: string
}): Promise<OwnServer> {
  const folder = mkdtempSync(join(tmpdir(), 'broker-own-'))
  const cluster = join(folder, 'cluster')
  const launcher = createLauncher(serverAccount(cluster))
  const binaries = await runnableBinaries(findBinaries(), launcher)
  const own = (path: string) => {
    if (launcher.account) chownSync(path, launcher.account.uid, launcher.account.gid)
  }
  own(folder)
  await copyCluster(folder, 'cluster')
  const files = join(folder, 'files')
  mkdirSync(files, { mode: 0o700 })
  own(files)
  writeFileSync(join(files, 'hba'), ['local all all trust', ...hba, ''].join('\n'))
  own(join(files, 'hba'))
  for (const name of ['server.crt', 'server.key', 'ca.crt']) {
    copyFileSync(certificate(name), join(files, name))
    chmodSync(join(files, name), 0o600)
    own(join(files, name))
  }
  const port = await freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: `"${folder}"`,
    hba_file: join(files, 'hba'),
    fsync: 'off',
    ssl: tls ? 'on' : 'off',
    ssl_cert_file: join(files, 'server.crt'),
    ssl_key_file: join(files, 'server.key'),
    ssl_ca_file: join(files, 'ca.crt'),
  }
  const child = launcher.spawn(binaries.postgres, [
    '-D',
    cluster,
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  process.once('exit', () => child.kill('SIGKILL'))
  const output = readOutput(child, () => {})
  let ended = false
  void output.ended.then(() => {
    ended = true
  })
  const sql = openPool(
    { host: folder, port, user: SUPERUSER, database: 'postgres' },
    { max: 2, fetch_types: false, connect_timeout: 0, onnotice: () => {} },
  )
  running.push(async () => {
    await sql.end({ timeout: 1 })
    child.kill('SIGINT')
    await output.ended
    rmSync(folder, { recursive: true, force: true })
  })
  await until(
    'the server answers',
    () =>
      ended ||
      sql`select 1`.then(
        () => true,
        () => false,
      ),
    30_000,
  )
  if (ended) throw new Error(`the server did not start: ${output.tail()}`)
  await sql.unsafe(`create role app login password '${password.replaceAll("'", "''")}'`)
  await sql.unsafe('create database app owner app')
  return { port, folder, sql }
}
