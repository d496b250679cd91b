import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { isPostmaster, readPidFile } from '../../lib/db/embedded/attach.ts'
import { MISREADS, misreadsEscapedKeys } from '../../lib/process/escaped-keys.ts'
import { connectTo, createDataDir, get, postmasterPid, startBroker } from '../support/broker.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { program } from '../support/program.ts'
import { becomes, until } from '../support/until.ts'

async function takePort(t: TestContext): Promise<string> {
  const holder = net.createServer().listen(0, '127.0.0.1')
  t.after(() => holder.close())
  await once(holder, 'listening')
  return `127.0.0.1:${(holder.address() as net.AddressInfo).port}`
}

const NOBODY = { uid: 65_534, gid: 65_534 }

/** Starts a program of the project on an embedded server. */
function launch(
  t: TestContext,
  dataDir: string,
  [source, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv = {},
  user: { uid?: number; gid?: number } = {},
) {
  const { DATABASE_URL: _, ...inherited } = process.env
  const child: ChildProcess = spawn(process.execPath, [...program(source), ...args], {
    env: {
      ...inherited,
      NODE_ENV: 'development',
      DATA_DIR: dataDir,
      LISTEN_ADDR: '127.0.0.1:0',
      ADMIN_ADDR: '127.0.0.1:0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    ...user,
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout!.on('data', (bytes) => {
    output += bytes
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, output }))
  return { child, ended }
}

const SERVER = ['lib/server.ts'] as const

/** The last log line of a failed program: one sentence, without the stack of an error. */
function lastWords(output: string): string {
  const line = JSON.parse(output.trimEnd().split('\n').at(-1)!)
  assert.equal(line.level, 'fatal', output)
  assert.equal(line.err, undefined, output)
  assert.doesNotMatch(line.msg, /\n/)
  return line.msg
}

describe('a failed start stops its database server', { timeout: 900_000, skip: onlyFull }, () => {
  for (const variable of ['LISTEN_ADDR', 'ADMIN_ADDR']) {
    test(`the port of ${variable} is taken: exit code 1, and no server is left`, async (t) => {
      const dataDir = createDataDir()
      const { code, output } = await launch(t, dataDir, SERVER, { [variable]: await takePort(t) }).ended
      assert.equal(code, 1)
      assert.match(
        lastWords(output),
        new RegExp(`^${variable}: 127\\.0\\.0\\.1:\\d+ cannot be used \\(EADDRINUSE\\): another program listens there`),
      )
      assert.equal(postmasterPid(dataDir), undefined)
      assert.equal(readPidFile(join(dataDir, 'postgres')), undefined)
    })
  }

  test('the log warns about a Node that misreads escaped keys, and about no other Node', async (t) => {
    const { output } = await launch(t, createDataDir(), SERVER, { LISTEN_ADDR: await takePort(t) }).ended
    assert.equal(output.includes(MISREADS), misreadsEscapedKeys())
  })

  test('the schema is of a newer release: exit code 1, and no server is left', async (t) => {
    const dataDir = createDataDir()
    const broker = await startBroker({ dataDir })
    const sql = connectTo(dataDir)
    await sql`update schema_migration set version = 9999 where version = (select max(version) from schema_migration)`
    await sql.end()
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
    const { code, output } = await launch(t, dataDir, SERVER).ended
    assert.equal(code, 1)
    assert.match(output, /9999/)
    assert.equal(postmasterPid(dataDir), undefined)
  })

  test('another broker uses the server: the server keeps running for that broker', async (t) => {
    const dataDir = createDataDir()
    const other = await startBroker({ dataDir })
    const server = postmasterPid(dataDir)
    const { code } = await launch(t, dataDir, SERVER, { LISTEN_ADDR: await takePort(t) }).ended
    assert.equal(code, 1)
    assert.equal(postmasterPid(dataDir), server)
    await becomes(async () => (await get(`${other.url}/health`)).status, 200)
    assert.deepEqual(await other.stop(), { code: 0, signal: null })
    assert.equal(postmasterPid(dataDir), undefined)
  })
})

describe('a data folder that cannot be used ends the start with a sentence that names DATA_DIR', {
  timeout: 900_000,
}, () => {
  test('a folder that cannot be made', { skip: !existsSync('/proc/self') && 'needs /proc' }, async (t) => {
    const { code, output } = await launch(t, '/proc/x/y', SERVER).ended
    assert.equal(code, 1)
    assert.match(lastWords(output), /^DATA_DIR: \/proc\/x cannot be made \(ENOENT\)/)
  })

  test('a file', async (t) => {
    const path = join(createDataDir(), 'file')
    writeFileSync(path, '')
    for (const dataDir of depth([path], [path, join(path, 'below')])) {
      const { code, output } = await launch(t, dataDir, SERVER).ended
      assert.equal(code, 1)
      assert.match(lastWords(output), /^DATA_DIR: \S+ cannot be made \((EEXIST|ENOTDIR)\)/)
    }
  })

  test('a folder without permission to write', {
    skip: process.getuid?.() !== 0 && 'takes root to become somebody else',
  }, async (t) => {
    const dataDir = createDataDir()
    chmodSync(dataDir, 0o755)
    const { code, output } = await launch(t, dataDir, SERVER, {}, NOBODY).ended
    assert.equal(code, 1)
    assert.match(lastWords(output), /^DATA_DIR: .*(EACCES|[Pp]ermission denied)/)
  })

  for (const [what, command] of [
    ['a job', ['jobs/run.ts', 'late-resolve']],
    ['migrate', ['sql/migrate.ts']],
  ] as const)
    test(`${what} ends with the same sentence`, { skip: !existsSync('/proc/self') && 'needs /proc' }, async (t) => {
      const { code, output } = await launch(t, '/proc/x', command).ended
      assert.equal(code, 1)
      assert.match(lastWords(output), /^DATA_DIR: \/proc\/x cannot be made/)
    })
})

describe('a data folder that is removed under a running broker', { timeout: 900_000 }, () => {
  test('ends the broker with a sentence that names DATA_DIR, and ends its server', async () => {
    const dataDir = createDataDir()
    const broker = await startBroker({ dataDir })
    const server = postmasterPid(dataDir)!
    rmSync(dataDir, { recursive: true, force: true })
    assert.deepEqual(await broker.exited, { code: 1, signal: null })
    assert.match(String(broker.log.at(-1)!.msg), /^DATA_DIR: .* is gone/)
    assert.equal(broker.log.at(-1)!.err, undefined)
    await until('its server is gone', () => !isPostmaster(server, join(dataDir, 'postgres')))
  })
})

describe('SIGTERM during the start', { timeout: 900_000, skip: onlyFull }, () => {
  // 0 for the server, and 1 for programs whose work is not done.
  const programs = [
    { name: 'the server', command: SERVER, exitCode: 0 },
    { name: 'a job', command: ['jobs/run.ts', 'late-resolve'] as const, exitCode: 1 },
    { name: 'migrate', command: ['sql/migrate.ts'] as const, exitCode: 1 },
  ]
  for (const { name, command, exitCode } of programs) {
    test(`ends ${name} in an orderly way, and no server is left`, async (t) => {
      const dataDir = createDataDir()
      const { child, ended } = launch(t, dataDir, command)
      // The cluster is being made or the server starts: there is no schema yet.
      await until('it has begun', () => readPidFile(join(dataDir, 'postgres')))
      child.kill('SIGTERM')
      const { code, signal, output } = await ended
      assert.deepEqual({ code, signal }, { code: exitCode, signal: null }, output)
      assert.match(output, /"stopping/)
      assert.equal(postmasterPid(dataDir), undefined)
    })
  }

  test('does not wait for a migration that waits for a lock', async (t) => {
    const dataDir = createDataDir()
    const other = await startBroker({ dataDir })
    const sql = connectTo(dataDir, 1)
    await sql`begin`
    await sql`lock table schema_migration in access exclusive mode`
    const { child, ended } = launch(t, dataDir, SERVER)
    const watch = connectTo(dataDir, 1)
    await until('the migration waits', async () => (await watch`select from pg_locks where not granted`).length > 0)
    child.kill('SIGTERM')
    const { code, output } = await ended
    assert.equal(code, 0)
    assert.doesNotMatch(output, /"listening"/)
    await sql`rollback`
    await sql.end()
    await watch.end()
    assert.deepEqual(await other.stop(), { code: 0, signal: null })
  })
})
