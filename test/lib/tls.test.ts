import assert from 'node:assert/strict'
import net from 'node:net'
import { after, before, describe, test } from 'node:test'
import { readAddress, urlParameters } from '../../lib/db/address.ts'
import { type Connection, openDatabase } from '../../lib/db/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { certificate, type OwnServer, startOwnServer } from '../support/own-server.ts'

const MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
const ca = `sslrootcert=${encodeURIComponent(certificate('ca.crt'))}`
const stranger = `sslrootcert=${encodeURIComponent(certificate('stranger.crt'))}`
const client = `sslcert=${encodeURIComponent(certificate('client.crt'))}&sslkey=${encodeURIComponent(certificate('client.key'))}`

/** `tls`, `plain`, or the error; the connections of the service and of the migration must agree. */
async function outcome(url: string): Promise<string> {
  const connection: Connection = readAddress(urlParameters(url, 'the URL'))
  const db = openDatabase({
    connection,
    poolMax: 3,
    statementTimeoutMs: 60_000,
    prepare: true,
    applicationName: 'tls-test',
    retries: 0,
    log: noLog,
  })
  const pool = openPool(url, { max: 1, fetch_types: false, connect_timeout: 0 })
  const found: string[] = []
  for (const ask of [() => db.read((sql) => isPrivate(sql)), () => isPrivate(pool)]) {
    found.push(
      await ask().then(
        ([row]) => (row!.ssl ? 'tls' : 'plain'),
        (error: Error) => error.message.replace(/^database unavailable: /, ''),
      ),
    )
  }
  await db.end(100)
  await pool.end({ timeout: 1 })
  assert.equal(found[0], found[1])
  return found[0]!
}

const isPrivate = (sql: Parameters<Parameters<ReturnType<typeof openDatabase>['read']>[0]>[0]) =>
  sql<{ ssl: boolean }[]>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`

describe('TLS', () => {
  let plain: OwnServer
  let tls: OwnServer
  const at = (server: OwnServer, query: string, database = 'app', host = 'localhost') =>
    `postgres://app:secret@${host}:${server.port}/${database}?${query}`

  before(async () => {
    plain = await startOwnServer({})
    tls = await startOwnServer({
      tls: true,
      hba: ['hostssl strict all all scram-sha-256', 'hostssl mutual all all cert', 'host app all all scram-sha-256'],
    })
    for (const database of ['strict', 'mutual']) await tls.sql.unsafe(`create database ${database} owner app`)
  })

  test('a server without TLS is used in plain text where the mode allows it, and refused elsewhere', async () => {
    const found = Object.fromEntries(
      await Promise.all(
        MODES.map(async (mode) => [
          mode,
          await outcome(at(plain, `sslmode=${mode}${mode.startsWith('verify') ? `&${ca}` : ''}`)),
        ]),
      ),
    )
    const refusal = (mode: string) => `TLS: the server has no TLS, and sslmode=${mode} asks for it`
    assert.deepEqual(found, {
      disable: 'plain',
      prefer: 'plain',
      require: refusal('require'),
      'verify-ca': refusal('verify-ca'),
      'verify-full': refusal('verify-full'),
    })
    assert.equal(await outcome(`postgres://app:secret@localhost:${plain.port}/app`), 'plain')
  })

  test('a server that accepts both gets TLS from `prefer` up', async () => {
    const found = await Promise.all(MODES.map((mode) => outcome(at(tls, `sslmode=${mode}&${ca}`))))
    assert.deepEqual(found, ['plain', 'tls', 'tls', 'tls', 'tls'])
  })

  test('a server that accepts only TLS gets TLS from `prefer` up', async () => {
    const [disable, ...others] = await Promise.all(
      MODES.map((mode) => outcome(at(tls, `sslmode=${mode}&${ca}`, 'strict'))),
    )
    assert.match(disable!, /no pg_hba.conf entry .*no encryption/)
    assert.deepEqual(others, ['tls', 'tls', 'tls', 'tls'])
  })

  test('a server of another authority is refused with verify-ca, verify-full, and `require` with an authority', async () => {
    for (const mode of ['require', 'verify-ca', 'verify-full'])
      assert.match(await outcome(at(tls, `sslmode=${mode}&${stranger}`)), /^TLS: .*certificate/, mode)
    assert.match(await outcome(at(tls, 'sslmode=verify-full')), /^TLS: .*certificate/)
    assert.equal(await outcome(at(tls, 'sslmode=require')), 'tls')
  })

  test('verify-full checks the name or address of the host, verify-ca does not', async () => {
    const by = (mode: string) => outcome(at(tls, `sslmode=${mode}&${ca}`, 'app', '127.0.0.1'))
    assert.match(await by('verify-full'), /^TLS: .*127\.0\.0\.1 is not in the cert/)
    assert.equal(await by('verify-ca'), 'tls')
  })

  test('a client certificate is sent to a server that requires one', async () => {
    assert.match(await outcome(at(tls, `sslmode=verify-full&${ca}`, 'mutual')), /requires a valid client certificate/)
    assert.equal(await outcome(at(tls, `sslmode=verify-full&${ca}&${client}`, 'mutual')), 'tls')
  })

  test('direct TLS from the first byte works', async () => {
    assert.equal(await outcome(at(tls, `sslmode=verify-full&${ca}&sslnegotiation=direct`)), 'tls')
  })

  test('a unix socket has no TLS, as with libpq', async () => {
    assert.equal(
      await outcome(`postgres://app@${encodeURIComponent(tls.folder)}:${tls.port}/app?sslmode=require`),
      'plain',
    )
  })

  test('a host that is down is skipped, with and without TLS', { timeout: 900_000 }, async () => {
    for (const [mode, expected] of [
      ['prefer', 'tls'],
      ['disable', 'plain'],
      ['verify-full', 'tls'],
    ] as const)
      assert.equal(
        await outcome(`postgres://app:secret@127.0.0.1:1,localhost:${tls.port}/app?sslmode=${mode}&${ca}`),
        expected,
      )
  })

  test('a migration over TLS works, and one that gets no TLS fails at once with the reason', async () => {
    const { version } = await migrate({ connection: at(tls, `sslmode=verify-full&${ca}`), log: noLog })
    assert.ok(version > 0)
    await assert.rejects(
      migrate({ connection: at(plain, 'sslmode=require'), log: noLog }),
      /the server has no TLS, and sslmode=require asks for it/,
    )
  })

  test('extra bytes after the answer to the TLS request are refused', async () => {
    const middle = net.createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.write(Buffer.concat([Buffer.from('S'), Buffer.from('forged')])))
    })
    await new Promise<void>((resolve) => middle.listen(0, '127.0.0.1', resolve))
    after(() => middle.close())
    const { port } = middle.address() as net.AddressInfo
    assert.match(
      await outcome(`postgres://app@127.0.0.1:${port}/app?sslmode=prefer`),
      /did not answer the request for TLS/,
    )
  })
})

const refused: [query: string, says: RegExp][] = [
  ['sslmode=on', /`sslmode`: expected disable, prefer, require, verify-ca, verify-full/],
  ['sslmode=allow', /`sslmode`: expected disable, prefer, require, verify-ca, verify-full/],
  ['sslmode=verify-ca', /`sslmode`: verify-ca needs sslrootcert/],
  [ca, /`sslrootcert`: counts only with a sslmode: set that to verify-full/],
  ['sslmode=require&sslrootcert=system', /`sslrootcert`: `system` goes only with the sslmode verify-full/],
  ['sslmode=verify-full&sslrootcert=/nonexistent/ca', /`sslrootcert`: \/nonexistent\/ca cannot be read \(ENOENT\)/],
  [`sslmode=verify-full&sslcert=${encodeURIComponent(certificate('client.crt'))}`, /`sslcert`: needs sslkey/],
  [`sslmode=verify-full&sslkey=${encodeURIComponent(certificate('client.key'))}`, /`sslkey`: needs sslcert/],
  [client, /`sslcert`: counts only with a sslmode/],
  [
    `sslmode=require&sslcert=${encodeURIComponent(certificate('client.crt'))}&sslkey=${encodeURIComponent(certificate('server.key'))}`,
    /`sslcert`: the certificate files cannot be used/,
  ],
  ['sslmode=prefer&sslnegotiation=direct', /`sslnegotiation`: direct goes only with a sslmode from require up/],
  ['sslmode=require&channel_binding=require', /`channel_binding` is not supported: leave it out/],
  ['gssencmode=require', /`gssencmode` is not supported/],
  ['sslmode=verify-full&sslcrl=x', /`sslcrl` is not supported/],
  ['sslmode=require&ssl_min_protocol_version=TLSv1.3', /`ssl_min_protocol_version` is not supported/],
  ['require_auth=scram-sha-256', /`require_auth` is not supported/],
  ['hostaddr=10.0.0.1', /`hostaddr` is not supported/],
]
for (const [query, says] of refused) {
  test(`${query.replaceAll(/%2F[^&]*%2F/g, '')} is refused`, () => {
    assert.throws(() => readAddress(urlParameters(`postgres://app@db/app?${query}`, 'DATABASE_URL')), {
      name: 'AddressError',
      message: says,
    })
  })
}
