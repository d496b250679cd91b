import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { accepts, readPidFile } from '../../lib/db/embedded/attach.ts'
import { findBinaries, linkLibraries } from '../../lib/db/embedded/binaries.ts'
import { EmbeddedUnavailable, startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { emptyInstallation, installation, isGone, query } from '../support/installation.ts'
import { noLog } from '../support/log.ts'
import { copyCluster } from '../support/prepared-cluster.ts'
import { startRefusing } from '../support/refusing.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0

test('a fresh folder becomes a durable UTF8 server on a private socket, and pools open on each form of its address', async (t) => {
  const site = emptyInstallation(t)
  const dataDir = join(site.dataDir, 'blank, "quoted"', 'new')
  const server = await site.start(dataDir)
  assert.equal(server.attached, false)
  const [settings] = await query(
    server,
    `select current_setting('server_encoding') as encoding, current_setting('listen_addresses') as listen, current_setting('fsync') as fsync,
            current_setting('full_page_writes') as pages, current_setting('synchronous_commit') as commit,
            current_setting('timezone') as zone, current_setting('max_connections') as connections`,
  )
  assert.deepEqual(
    { ...(settings as object) },
    { encoding: 'UTF8', listen: '', fsync: 'on', pages: 'on', commit: 'on', zone: 'UTC', connections: '200' },
  )
  assert.equal(server.options.host, join(dataDir, 'postgres-socket'))
  assert.equal(statSync(server.options.host).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(dataDir).sort(), ['postgres', 'postgres-owner', 'postgres-socket'])

  const { user, host, database } = server.options
  for (const connection of [
    server.options,
    server.url,
    `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}`,
  ]) {
    const sql = openPool(connection, { max: 1, fetch_types: false })
    const [row] = await sql`select current_user as user, current_database() as database`
    await sql.end()
    assert.deepEqual({ ...row }, { user, database })
  }

  await server.stop()
  assert.ok(isGone(dataDir, server.pid))
  assert.deepEqual(readdirSync(server.options.host), [])
})

test('a pool opens on a URL of TCP', async () => {
  const tcp = openPool('postgresql://me:pass%2Fword@example.test:6543/db', { max: 1 })
  assert.deepEqual(
    [tcp.options.host, tcp.options.port, tcp.options.user, tcp.options.database],
    [['example.test'], [6543], 'me', 'db'],
  )
  await tcp.end()
})

test('the data is kept between runs', async (t) => {
  const site = await installation(t)
  const first = await site.start()
  await query(first, 'create table kept as select 42 as answer')
  await first.stop()
  const second = await site.start()
  assert.notEqual(second.pid, first.pid)
  assert.deepEqual([...(await query(second, 'select answer from kept'))], [{ answer: 42 }])
})

test('root runs it as another user without any capability, and opens the folder for passing', {
  skip: !isRoot && 'needs root',
}, async (t) => {
  const site = await installation(t)
  const { dataDir } = site
  chmodSync(dataDir, 0o700)
  const server = await site.start()
  assert.equal(statSync(dataDir).mode & 0o777, 0o701)
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  assert.match(status, /^Uid:\t([1-9]\d*)\t\1\t\1\t\1$/m)
  assert.match(status, /^CapEff:\t0+$/m)
  assert.match(status, /^Groups:\t\s*$/m)
  assert.equal(statSync(dataDir).uid, 0)
  assert.notEqual(statSync(join(dataDir, 'postgres')).uid, 0)
})

test('two processes that start at once on an empty folder share one server', async (t) => {
  const site = emptyInstallation(t)
  const { dataDir } = site
  const others = [site.other(), site.other()]
  const [one, two] = await Promise.all(others.map((other) => other.up))
  assert.equal(one!.pid, two!.pid)
  assert.deepEqual([one!.attached, two!.attached].sort(), [false, true])
  assert.deepEqual(readdirSync(dataDir).sort(), ['postgres', 'postgres-owner', 'postgres-socket'])
  await Promise.all(others.map((other) => other.leave()))
  assert.ok(isGone(dataDir, one!.pid))
})

test('the owner stops the server when it ends; an attached process then starts it again and owns it', async (t) => {
  const site = await installation(t)
  const { dataDir } = site
  const owner = site.other()
  const { pid } = await owner.up
  const server = await site.start()
  assert.deepEqual({ pid: server.pid, attached: server.attached }, { pid, attached: true })
  await query(server, 'create table kept as select 42 as answer')
  await owner.leave()
  assert.ok(isGone(dataDir, pid))
  await until('it is ours now', () => !server.attached && server.pid !== pid)
  assert.deepEqual([...(await query(server, 'select answer from kept'))], [{ answer: 42 }])
  await server.stop()
  assert.ok(isGone(dataDir, server.pid))
})

test('an attached process that ends leaves the server to its owner', async (t) => {
  const site = await installation(t)
  const owner = site.other()
  const { pid } = await owner.up
  const attached = site.other()
  assert.deepEqual(await attached.up, { pid, attached: true })
  await attached.leave()
  assert.equal(isGone(site.dataDir, pid), false)
  await owner.leave()
  assert.ok(isGone(site.dataDir, pid))
})

test('after kill -9 of its owner the server runs on; the next start attaches to it and stops it', async (t) => {
  const site = await installation(t)
  const owner = site.other()
  const { pid } = await owner.up
  owner.process.kill('SIGKILL')
  await once(owner.process, 'exit')
  const heir = site.other()
  assert.deepEqual(await heir.up, { pid, attached: true })
  const third = site.other()
  assert.deepEqual(await third.up, { pid, attached: true })
  await third.leave()
  assert.equal(isGone(site.dataDir, pid), false, 'it has an owner again')
  await heir.leave()
  assert.ok(isGone(site.dataDir, pid))
})

test('after kill -9 during the start the next one attaches, and stops the server', async (t) => {
  const site = await installation(t)
  const early = site.other()
  const pid = await until('the server is starting', () => readPidFile(join(site.dataDir, 'postgres'))?.pid)
  early.process.kill('SIGKILL')
  early.up.catch(() => {})
  const server = await site.start()
  assert.equal((await query(server, 'select 1')).length, 1)
  await server.stop()
  assert.ok(isGone(site.dataDir, pid))
  assert.ok(isGone(site.dataDir, server.pid))
})

test('kill -9 of the server: the process that started it starts it again, with the data', async (t) => {
  const site = await installation(t)
  const { dataDir } = site
  const server = await site.start()
  await query(server, 'create table kept as select 42 as answer')
  const killed = server.pid
  process.kill(killed, 'SIGKILL')
  await until('it runs again', () => server.pid !== killed)
  assert.deepEqual([...(await query(server, 'select answer from kept'))], [{ answer: 42 }])
  assert.equal(readPidFile(join(dataDir, 'postgres'))?.pid, server.pid)
  assert.equal(server.attached, false)
})

test('a server that was told to stop, but waits for a client, is replaced', async (t) => {
  const site = await installation(t)
  const server = await site.start()
  const pool = openPool(server.options, { max: 1, fetch_types: false })
  site.atEnd(() => pool.end({ timeout: 1 }))
  await pool`select 1`
  const stopping = server.pid
  process.kill(stopping, 'SIGTERM')
  await until('another one is up', () => server.pid !== stopping)
  assert.equal((await query<{ one: number }>(server, 'select 1 as one'))[0]!.one, 1)
})

test('after kill -9 of owner and server the next start recovers', async (t) => {
  const site = await installation(t)
  const { dataDir } = site
  const owner = site.other()
  const { pid } = await owner.up
  owner.process.kill('SIGKILL')
  process.kill(pid, 'SIGKILL')
  await until('the killed server is gone', () => isGone(dataDir, pid))
  assert.equal(readPidFile(join(dataDir, 'postgres'))?.pid, pid)
  const server = await site.start()
  assert.equal(server.attached, false)
  assert.equal((await query(server, 'select 1')).length, 1)
})

test('a stale pid file whose number belongs to another program is ignored', async (t) => {
  const site = await installation(t)
  const { dataDir } = site
  const cluster = join(dataDir, 'postgres')
  const first = await site.start()
  const pidFile = readFileSync(join(cluster, 'postmaster.pid'), 'utf8')
  await first.stop()
  // Run as the user of the server: PostgreSQL ignores processes of other users.
  const { uid, gid } = statSync(cluster)
  const bystander = spawn('sleep', ['600'], isRoot ? { uid, gid } : {})
  site.atEnd(() => bystander.kill())
  await once(bystander, 'spawn')
  writeFileSync(join(cluster, 'postmaster.pid'), pidFile.replace(/^\d+/, String(bystander.pid)))
  const second = await site.start()
  assert.equal((await query(second, 'select 1')).length, 1)
  assert.equal(bystander.exitCode, null)
})

test('where the path is too long for a socket address, the socket goes to the temporary folder', async (t) => {
  const site = emptyInstallation(t)
  const dataDir = join(site.dataDir, 'long'.repeat(30))
  mkdirSync(dataDir)
  await copyCluster(dataDir)
  const server = await site.start(dataDir)
  site.atEnd(async () => {
    await server.stop()
    rmSync(server.options.host, { recursive: true, force: true })
  })
  assert.equal(dirname(server.options.host), tmpdir())
  assert.equal(statSync(server.options.host).mode & 0o777, 0o700)
  const second = await site.start(dataDir)
  assert.equal(second.pid, server.pid)
})

test('a folder that cannot be a cluster is refused with the message of the server', async (t) => {
  const site = await installation(t)
  const { dataDir } = site
  const first = await site.start()
  await first.stop()
  writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '9\n')
  await assert.rejects(startEmbedded({ dataDir, log: noLog }), (error: Error) => {
    assert.ok(error instanceof EmbeddedUnavailable)
    assert.match(error.message, /incompatible with server.*DATABASE_URL/)
    return true
  })
})

test('a platform without binaries or sockets is told to set DATABASE_URL', () => {
  for (const [platform, arch] of [
    ['win32', 'x64'],
    ['aix', 'ppc64'],
  ] as const) {
    assert.throws(() => findBinaries(platform, arch), { name: 'EmbeddedUnavailable', message: /DATABASE_URL/ })
  }
})

test('library links missing from the installation are created once', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'broker-links-'))
  t.after(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'native/lib'), { recursive: true })
  writeFileSync(join(root, 'native/lib/libpq.so.5.18'), 'library')
  writeFileSync(
    join(root, 'native/pg-symlinks.json'),
    JSON.stringify([{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]),
  )
  linkLibraries(root)
  linkLibraries(root)
  const link = join(root, 'native/lib/libpq.so.5')
  assert.ok(lstatSync(link).isSymbolicLink())
  assert.equal(readFileSync(link, 'utf8'), 'library')
})

for (const [severity, code] of [
  ['FATAL', '57P03'],
  ['FATAL', '53300'],
  ['FATAL', '3D000'],
  ['ERROR', '57014'],
  ['ERROR', '53200'],
] as const) {
  test(`a server that answers ${severity} ${code} is not ready yet`, async (t) => {
    assert.equal(await accepts(await answering(t, severity, code)), false)
  })
}

test('without a socket no server is ready; an error that is not about the connection is thrown', async (t) => {
  const server = await answering(t, 'ERROR', '42601')
  assert.equal(await accepts({ ...server, host: join(server.host, 'not-there') }), false)
  await assert.rejects(accepts(server), { code: '42601' })
})

/** The address of a server that answers with one error. */
async function answering(t: TestContext, severity: string, code: string) {
  const host = mkdtempSync(join(tmpdir(), 'broker-answering-'))
  t.after(() => rmSync(host, { recursive: true, force: true }))
  await startRefusing(t, severity, code, { path: join(host, '.s.PGSQL.5432') })
  return { host, port: 5432, user: 'nobody', database: 'none' }
}
