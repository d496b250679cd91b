import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig, redacted } from '../../lib/config/index.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { ConfigError } from '../../lib/errors.ts'
import { noLog } from '../support/log.ts'
import { startOwnServer } from '../support/own-server.ts'

const folder = mkdtempSync(join(tmpdir(), 'pg-variables-'))
after(() => rmSync(folder, { recursive: true }))
const secret = 'S3cret'

let files = 0
function fileWith(text: string): string {
  const path = join(folder, `password-${++files}`)
  writeFileSync(path, text)
  return path
}

function refusal(env: NodeJS.ProcessEnv): string {
  try {
    loadConfig(env)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    assert.ok(!error.message.includes(secret), error.message)
    return error.message
  }
  assert.fail('the environment was accepted')
}

/** The target of these variables, in short. */
function target(env: NodeJS.ProcessEnv): string {
  const { database } = loadConfig(env)
  if (database === null) return 'embedded'
  const { host, port, path, user, password, database: name, tls } = database
  return `${user}:${password()}@${path ?? host.map((one, at) => `${one}:${port[at]}`)}/${name} ${tls.mode}`
}

const ALL = {
  PGHOST: 'pg.test',
  PGPORT: '6000',
  PGUSER: 'ann',
  PGPASSWORD: 'pw',
  PGDATABASE: 'data',
  PGSSLMODE: 'prefer',
}
const cases: [what: string, env: NodeJS.ProcessEnv, target: string][] = [
  ['the URL alone', { DATABASE_URL: 'postgres://bob:x@h:1/d?sslmode=require' }, 'bob:x@h:1/d require'],
  [
    'the URL before every variable',
    { ...ALL, DATABASE_URL: 'postgres://bob:x@h:1/d?sslmode=require' },
    'bob:x@h:1/d require',
  ],
  [
    'variables for all that the URL leaves open',
    { ...ALL, DATABASE_URL: 'postgres://' },
    'ann:pw@pg.test:6000/data prefer',
  ],
  ['variables alone', ALL, 'ann:pw@pg.test:6000/data prefer'],
  ['a password for the URL', { DATABASE_URL: 'postgres://bob@h/d', PGPASSWORD: ' p@w ' }, 'bob: p@w @h:5432/d disable'],
  ['a role for the URL', { DATABASE_URL: 'postgres://h/d', PGUSER: 'ann' }, 'ann:@h:5432/d disable'],
  ['a database for the URL', { DATABASE_URL: 'postgres://bob@h', PGDATABASE: 'data' }, 'bob:@h:5432/data disable'],
  ['the role as the database', { PGHOST: 'h', PGUSER: 'ann' }, 'ann:@h:5432/ann disable'],
  ['several hosts', { PGHOST: 'a,b', PGPORT: '1,2', PGUSER: 'u' }, 'u:@a:1,b:2/u disable'],
  ['one port for several hosts', { PGHOST: 'a,::1', PGPORT: '7', PGUSER: 'u' }, 'u:@a:7,::1:7/u disable'],
  ['several hosts in the URL', { DATABASE_URL: 'postgres://u@a:1,[::1],b:3/d' }, 'u:@a:1,::1:5432,b:3/d disable'],
  [
    'a socket',
    { PGHOST: '/run/pg', PGPORT: '7', PGUSER: 'u', PGSSLMODE: 'require' },
    'u:@/run/pg/.s.PGSQL.7/u disable',
  ],
  ['a socket in the URL', { DATABASE_URL: 'postgres://u@%2Frun%2Fpg:7/d' }, 'u:@/run/pg/.s.PGSQL.7/d disable'],
  [
    'a socket in the query',
    { DATABASE_URL: 'postgres:///d?host=/run/pg&user=u' },
    'u:@/run/pg/.s.PGSQL.5432/d disable',
  ],
  ['an escaped password', { DATABASE_URL: 'postgres://u:%23%3F%2F%40%25%5B%3A@h/d' }, 'u:#?/@%[:@h:5432/d disable'],
  ['an unescaped @, : and [ in the password', { DATABASE_URL: 'postgres://u:a@b:c[@h/d' }, 'u:a@b:c[@h:5432/d disable'],
  ['a password of the query', { DATABASE_URL: 'postgres://u@h/d?password=a%26b' }, 'u:a&b@h:5432/d disable'],
  [
    'a file',
    { DATABASE_URL: 'postgres://u@h/d', DATABASE_PASSWORD_FILE: fileWith(' from file\r\n') },
    'u: from file@h:5432/d disable',
  ],
  [
    'a file for PGHOST',
    { PGHOST: 'h', PGUSER: 'u', DATABASE_PASSWORD_FILE: fileWith('of a file\n') },
    'u:of a file@h:5432/u disable',
  ],
  ['neither', {}, 'embedded'],
  ['blank variables', { PGHOST: ' ', PGPASSWORD: ' ', DATABASE_PASSWORD_FILE: ' ' }, 'embedded'],
]
for (const [what, env, expected] of cases) {
  test(`the database: ${what}`, () => {
    assert.equal(target(env), expected)
    assert.deepEqual(loadConfig(env).warnings, [])
  })
}

const hints: [char: string, code: string, urls: string[]][] = [
  ['#', '%23', [`postgres://u:${secret}#x@h/d`, `postgres://u:12#${secret}@h/d`, `postgres://u:${secret}@h/d#x`]],
  ['?', '%3F', [`postgres://u:${secret}?x@h/d`, `postgres://u:12?${secret}=1@h/d`, `postgres://u:12?${secret}@h`]],
  [
    '/',
    '%2F',
    [`postgres://u:${secret}/x@h/d`, `postgres://u:12/${secret}@h/d`, `postgres://u:12/${secret}@h/d?sslmode=require`],
  ],
  ['%', '%25', [`postgres://u:${secret}%@h/d`, `postgres://u:${secret}%zz@h/d`]],
]
for (const [char, code, urls] of hints) {
  test(`a ${char} in the password gets a message that says how to write it`, () => {
    for (const DATABASE_URL of urls) {
      const message = refusal({ DATABASE_URL })
      assert.ok(
        message.startsWith(`DATABASE_URL: write a \`${char}\` in the user or password percent-encoded, as \`${code}\``),
        message,
      )
      assert.equal(message.split('\n').length, 1)
    }
  })
}

const refused: [env: NodeJS.ProcessEnv, says: RegExp][] = [
  [{ PGHOST: 'h', PGPORT: 'x' }, /^PGPORT: expected a number from 1 to 65535$/],
  [{ PGHOST: 'h', PGPORT: '65536' }, /^PGPORT: expected a number/],
  [{ PGHOST: 'a,b,c', PGPORT: '1,2' }, /^PGPORT: expected one port, or as many as hosts$/],
  [{ PGHOST: 'h,/run/pg' }, /^PGHOST: a unix socket must be the only host$/],
  [{ PGHOST: 'h', PGSSLMODE: 'on' }, /^PGSSLMODE: expected disable, prefer/],
  [
    { PGHOST: 'h', PGSSLMODE: 'verify-full', PGSSLROOTCERT: '/nonexistent' },
    /^PGSSLROOTCERT: \/nonexistent cannot be read \(ENOENT\)$/,
  ],
  [{ PGHOST: 'h', PGCHANNELBINDING: 'require' }, /^PGCHANNELBINDING is not supported: leave it out$/],
  [{ DATABASE_URL: 'postgres://h/d', PGSERVICE: 'x' }, /^PGSERVICE is not supported/],
  [{ DATABASE_URL: 'postgres://h:x/d' }, /^DATABASE_URL: expected hosts as name:port/],
  [{ DATABASE_URL: 'postgres://h:0/d' }, /^DATABASE_URL: `port`: expected a number/],
  [
    { DATABASE_URL: 'postgres://h/d?target_session_attrs=best' },
    /^DATABASE_URL: `target_session_attrs`: expected read-write/,
  ],
  [
    { DATABASE_URL: 'postgres://h/d', DATABASE_PASSWORD_FILE: '/nonexistent' },
    /^DATABASE_PASSWORD_FILE: \/nonexistent cannot be read \(ENOENT\)$/,
  ],
  [{ DATABASE_URL: 'postgres://h/d', DATABASE_PASSWORD_FILE: fileWith('\n') }, /^DATABASE_PASSWORD_FILE: .* is empty$/],
  [
    { DATABASE_URL: `postgres://u:${secret}@h/d`, DATABASE_PASSWORD_FILE: fileWith('x') },
    /DATABASE_URL holds a password: keep one$/,
  ],
  [{ PGHOST: 'h', PGPASSWORD: secret, DATABASE_PASSWORD_FILE: fileWith('x') }, /PGPASSWORD are both set: keep one$/],
  [{ NODE_ENV: 'production', PGUSER: 'u' }, /^DATABASE_URL or PGHOST is required in production$/],
]
for (const [env, says] of refused) {
  test(`${Object.keys(env).join(', ')}: refused with ${says}`, () => assert.match(refusal(env), says))
}

test('production accepts PGHOST instead of a URL', () => {
  assert.equal(target({ NODE_ENV: 'production', PGHOST: 'h', PGUSER: 'u' }), 'u:@h:5432/u disable')
})

test('variables without a server are named in a warning, and the embedded one is used', () => {
  const { database, warnings } = loadConfig({ PGPASSWORD: secret, PGUSER: 'u', DATABASE_PASSWORD_FILE: fileWith('x') })
  assert.equal(database, null)
  assert.deepEqual(warnings, [
    'DATABASE_PASSWORD_FILE, PGUSER, PGPASSWORD: not used, since neither DATABASE_URL nor PGHOST names a server',
  ])
})

test('the printed target has no password', () => {
  const file = fileWith(`${secret}-file`)
  for (const env of [
    { DATABASE_URL: `postgres://u:${secret}@a:1,[::1]/d?sslmode=require` },
    { DATABASE_URL: 'postgres://u@a:1,[::1]/d?sslmode=require', PGPASSWORD: secret },
    { DATABASE_URL: 'postgres://u@a:1,[::1]/d?sslmode=require', DATABASE_PASSWORD_FILE: file },
    { DATABASE_URL: `postgres://a:1,[::1]/d?sslmode=require&user=u&password=${secret}` },
  ]) {
    const printed = redacted(loadConfig(env))
    assert.equal(printed.database, 'd as u at a:1, [::1]:5432, sslmode=require')
    assert.ok(!JSON.stringify(printed).includes(secret))
  }
})

test('the next connection reads the password from its file again, and uses the previous one while the file is empty', async (t) => {
  const server = await startOwnServer({ password: 'first' })
  const file = fileWith('first\n')
  const { database } = loadConfig({
    PGHOST: '127.0.0.1',
    PGPORT: String(server.port),
    PGUSER: 'app',
    PGDATABASE: 'app',
    DATABASE_PASSWORD_FILE: file,
  })
  const db = openDatabase({
    connection: database!,
    poolMax: 3,
    statementTimeoutMs: 60_000,
    prepare: true,
    applicationName: 'pg-variables-test',
    log: noLog,
  })
  t.after(() => db.end(100))
  assert.equal((await db.ingest((sql) => sql`select current_user as me`))[0]!.me, 'app')
  await server.sql`alter role app password 'second'`
  writeFileSync(file, 'second\n')
  assert.equal((await db.read((sql) => sql`select current_user as me`))[0]!.me, 'app')
  writeFileSync(file, '')
  assert.equal((await db.probe((sql) => sql`select current_user as me`))[0]!.me, 'app')
})

test('variables of the process have no effect on a database from the configuration', async (t) => {
  const server = await startOwnServer({ hba: ['host all all all trust'] })
  const hostile = {
    PGPASSWORD: 'x',
    PGDATABASE: 'nowhere',
    PGSSL: 'require',
    PGTARGETSESSIONATTRS: 'any',
    PGPORT: '1',
    PGMAX: '0',
  }
  Object.assign(process.env, hostile)
  t.after(() => {
    for (const name of Object.keys(hostile)) delete process.env[name]
  })
  const db = openDatabase({
    connection: `postgres://app@127.0.0.1:${server.port}`,
    poolMax: 3,
    statementTimeoutMs: 60_000,
    prepare: true,
    applicationName: 'pg-variables-test',
    log: noLog,
  })
  t.after(() => db.end(100))
  assert.equal((await db.read((sql) => sql`select current_database() as name`))[0]!.name, 'app')
  assert.equal(process.env.PGTARGETSESSIONATTRS, 'any')
})
