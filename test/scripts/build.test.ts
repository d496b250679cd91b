/** `npm run build` and `npm start` in a checkout of their own. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { VERSION } from '../../lib/version.ts'
import { createDataDir, get, post } from '../support/broker.ts'
import { cloneCheckout } from '../support/clone.ts'
import { createTestDatabase } from '../support/database.ts'
import { onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'

const KEPT_BUILDS = 10
const MAX_CLI_BYTES = 150 * 1024
const START_MS = 60_000
const TOKEN = 'a-token-of-the-scanner'
const DIGEST = `sha256:${'1'.repeat(64)}`

const noKubectl = spawnSync('kubectl', ['version', '--client']).status === 0 ? false : 'needs kubectl'
const noScript = spawnSync('script', ['--version']).status === 0 ? false : 'needs `script` of util-linux'

/** The non-blank lines of an output. */
const screen = (output: string) =>
  stripVTControlCharacters(output)
    .split(/\r?\n/)
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')

const clone = cloneCheckout()
const at = (path: string) => join(clone, path)

function run(t: TestContext, [command, ...args]: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { PATH, HOME, npm_execpath: npm } = process.env
  const [program, ...words] = command === 'npm' && npm ? [process.execPath, npm, ...args] : [command!, ...args]
  const child: ChildProcess = spawn(program!, words, {
    cwd: clone,
    detached: true,
    stdio: [command === 'script' ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    env: {
      PATH,
      HOME,
      npm_config_update_notifier: 'false',
      LISTEN_ADDR: '127.0.0.1:0',
      ADMIN_ADDR: '127.0.0.1:0',
      ...env,
    },
  })
  t.after(() => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {} // It has ended.
  })
  const heard = { output: '' }
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (bytes) => {
      heard.output += bytes
    })
  return { child, heard, closed: once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]> }
}

async function build(t: TestContext, isGood = true): Promise<string> {
  const { heard, closed } = run(t, ['npm', 'run', 'build'])
  assert.equal((await closed)[0] === 0, isGood, heard.output)
  return heard.output
}

/** Starts the broker with `command`; `api` is its address. */
async function started(t: TestContext, command: readonly string[]) {
  const { url } = await createTestDatabase()
  const running = run(t, command, { DATABASE_URL: url, BROKER_TOKEN_SUPPLYCHAIN: TOKEN })
  const listening = () => {
    if (running.child.exitCode !== null || /error/.test(running.heard.output)) throw new Error(running.heard.output)
    return /"api":"([^"]+)"/.exec(running.heard.output)
  }
  const [, api] = await until('it listens', listening, START_MS)
  return { ...running, api: api! }
}

/** Posts an SBOM and returns the status: reading it starts a thread, whose files are loaded only then. */
async function postSbom(api: string): Promise<number> {
  const body = {
    schema_version: 1,
    source: 'operator-scanner',
    scanned_at: '2026-01-01T00:00:00Z',
    image: { digest: DIGEST },
    components: [{ name: 'openssl', version: '3.0.1' }],
  }
  return (
    await post(`${api}/images/${DIGEST}/sbom`, body, {
      headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    })
  ).status
}

describe('npm run build', { timeout: 900_000, skip: onlyFull }, () => {
  test('lets a running broker keep the files that it was started from', async (t) => {
    await build(t)
    const { api } = await started(t, ['node', 'dist/lib/server.js'])
    const worker = readFileSync(at('lib/supply-chain/worker.ts'))
    appendFileSync(at('lib/supply-chain/worker.ts'), "throw new Error('of another release')\n")
    await build(t)
    assert.match(readFileSync(at('dist/lib/supply-chain/worker.js'), 'utf8'), /of another release/)
    assert.equal(await postSbom(api), 200)
    writeFileSync(at('lib/supply-chain/worker.ts'), worker)
  })

  test('does nothing, and needs no compiler, when the sources did not change', async (t) => {
    await build(t)
    const made = statSync(at('dist/lib/server.js'))
    renameSync(at('node_modules/typescript'), at('node_modules/away'))
    try {
      await build(t)
    } finally {
      renameSync(at('node_modules/away'), at('node_modules/typescript'))
    }
    const still = statSync(at('dist/lib/server.js'))
    assert.deepEqual([still.ino, still.mtimeMs], [made.ino, made.mtimeMs])
  })

  test('makes the command line one small program that needs no other file', async (t) => {
    await build(t)
    const alone = mkdtempSync(join(tmpdir(), 'ctb-alone-'))
    t.after(() => rmSync(alone, { recursive: true, force: true }))
    copyFileSync(at('dist/ctb.mjs'), join(alone, 'ctb'))
    const { stdout, stderr, status } = spawnSync(join(alone, 'ctb'), ['version'], { cwd: alone, encoding: 'utf8' })
    assert.deepEqual([stdout, stderr, status], [`${VERSION}\n`, '', 0])
    const { size } = statSync(at('dist/ctb.mjs'))
    assert.ok(size <= MAX_CLI_BYTES, `${size} bytes`)
    const { bin } = JSON.parse(readFileSync(at('package.json'), 'utf8'))
    assert.deepEqual(Object.entries(bin), [
      ['ctb', 'dist/ctb.mjs'],
      ['kubectl-telemetry_broker', 'dist/ctb.mjs'],
      ['kubectl_complete-telemetry_broker', 'dist/ctb.mjs'],
    ])
  })

  test('the names of the bundle say what it is', async (t) => {
    await build(t)
    const env = { PATH: process.env.PATH, CTB_SERVER: 'http://127.0.0.1:1' }
    const outOf = (name: string, ...words: string[]) =>
      spawnSync(at(`dist/${name}`), words, { env, encoding: 'utf8' }).stdout
    assert.match(outOf('ctb.mjs', '--help'), /^USAGE\n {2}ctb /)
    assert.match(outOf('kubectl-telemetry_broker', '--help'), /^USAGE\n {2}kubectl telemetry-broker /)
    assert.match(outOf('kubectl_complete-telemetry_broker', 'vers'), /^version\t.*\n:4\n$/)
  })

  test('makes a plugin of kubectl with its completion', { skip: noKubectl }, async (t) => {
    await build(t)
    const env = { PATH: `${at('dist')}:${process.env.PATH}`, HOME: clone, CTB_SERVER: 'http://127.0.0.1:1' }
    const kubectl = (...words: string[]) => spawnSync('kubectl', words, { env, encoding: 'utf8' })
    const version = kubectl('telemetry-broker', 'version')
    assert.deepEqual([version.stdout, version.stderr, version.status], [`${VERSION}\n`, '', 0])
    const help = kubectl('telemetry-broker', 'images', '--help')
    assert.match(help.stdout, /^USAGE\n {2}kubectl telemetry-broker images \[flags\]\n/)
    const [first, second, ...more] = kubectl('__complete', 'telemetry-broker', 'im').stdout.trimEnd().split('\n')
    assert.match(first!, /^images\tList images /)
    assert.deepEqual([second, more], [':4', []])
    const values = kubectl('__complete', 'telemetry-broker', 'images', '-n', 'sh')
    assert.deepEqual([values.stdout, values.status], [':4\n', 0])
  })

  test(`notices added and removed files, SQL too, and keeps the last ${KEPT_BUILDS} builds`, async (t) => {
    for (let i = 0; i < KEPT_BUILDS + 3; i++) {
      const { closed } = run(t, ['mkdir', `.build/${String(i).padStart(16, '0')}`])
      await closed
    }
    writeFileSync(at('lib/added.ts'), 'export const ADDED = 1\n')
    writeFileSync(at('sql/functions/999_added.sql'), 'select 1;\n')
    await build(t)
    assert.equal(readdirSync(at('.build')).length, KEPT_BUILDS)
    assert.ok(existsSync(at('dist/lib/added.js')))
    assert.ok(existsSync(at('dist/sql/functions/999_added.sql')))
    rmSync(at('lib/added.ts'))
    rmSync(at('sql/functions/999_added.sql'))
    await build(t)
    assert.ok(!existsSync(at('dist/lib/added.js')))
    assert.ok(!existsSync(at('dist/sql/functions/999_added.sql')))
  })

  test('leaves the previous build when it fails', async (t) => {
    writeFileSync(at('lib/broken.ts'), 'export const BROKEN =\n')
    assert.match(await build(t, false), /broken\.ts/)
    rmSync(at('lib/broken.ts'))
    assert.ok(existsSync(at('dist/lib/server.js')))
    assert.ok(!existsSync(at('dist/lib/broken.js')))
    assert.ok(existsSync(at('dist/sql/migrations/0001_pods.sql')))
  })

  test('builds again when a file is missing', async (t) => {
    rmSync(at('dist/lib/version.js'))
    rmSync(at('dist/sql/migrations/0001_pods.sql'))
    await build(t)
    rmSync(at('dist/ctb.mjs'))
    await build(t)
    assert.ok(existsSync(at('dist/ctb.mjs')))
    assert.ok(existsSync(at('dist/lib/version.js')))
    assert.ok(existsSync(at('dist/sql/migrations/0001_pods.sql')))
  })

  test('succeeds twice at the same time, with a complete build', async (t) => {
    appendFileSync(at('lib/version.ts'), '// changed\n')
    await Promise.all([build(t), build(t)])
    const names = readdirSync(at('.build'))
    assert.deepEqual(
      names.filter((name) => !/^[\da-f]{16}$/.test(name)),
      [],
    )
    assert.deepEqual(readdirSync(at('dist/sql/migrations')), readdirSync(at('sql/migrations')))
  })

  test('replaces the folder of an older release', async (t) => {
    rmSync(at('dist'), { recursive: true })
    // Older releases had a folder and no link.
    const { closed } = run(t, ['mkdir', '-p', 'dist/lib'])
    await closed
    writeFileSync(at('dist/lib/old.js'), '')
    await build(t)
    assert.ok(existsSync(at('dist/lib/server.js')))
    assert.ok(!existsSync(at('dist/lib/old.js')))
  })
})

describe('npm start', { timeout: 900_000, skip: onlyFull }, () => {
  test('prints at most ten lines on a terminal, the last with addresses, a request, the data folder and how to stop', {
    skip: noScript,
  }, async (t) => {
    await build(t)
    const dataDir = createDataDir()
    // A pseudo-terminal, into which Ctrl-C is typed.
    const { child, heard, closed } = run(
      t,
      ['script', '--quiet', '--flush', '--return', '--command', 'exec npm start', '/dev/null'],
      {
        DATA_DIR: dataDir,
      },
    )
    const question = await until('it says how to ask', () => /curl (http:\S+)/.exec(heard.output)?.[1], START_MS)
    await until('it says how to stop', () => /Ctrl-C/.test(heard.output))
    // Node 24 has a fault that the broker warns of.
    const lines = screen(heard.output).filter((line) => !line.includes('nodejs/node#63785'))
    assert.ok(lines.length <= 10, heard.output)
    for (const line of lines) assert.ok(line.length <= 120, line)
    const last = lines.slice(-5).join('\n')
    for (const said of [
      /http:\/\/127\.0\.0\.1:\d+/,
      /Console http\S+\/console\/$/m,
      /curl http/,
      new RegExp(dataDir),
      /Ctrl-C/,
    ])
      assert.match(last, said)
    assert.equal(lines.filter((line) => /migrat/.test(line)).length, 1)
    assert.equal((await get(question)).status, 200)
    const [, page] = /Console (http:\S+)/.exec(last)!
    assert.match((await get(page!)).text, /<meta name="console-token" content="none"/)
    child.stdin!.write('\x03')
    assert.deepEqual(await closed, [0, null], heard.output)
    assert.equal(screen(heard.output).filter((line) => /stopping/.test(line)).length, 1, heard.output)
    assert.match(heard.output, /stopped/)
  })

  test('SIGTERM to npm ends the broker', async (t) => {
    const { child, heard, closed } = await started(t, ['npm', 'start'])
    child.kill('SIGTERM')
    assert.deepEqual(await closed, [0, null], heard.output)
    assert.match(heard.output, /"stopped"/)
  })

  test('Ctrl-C ends it in order, with one message', async (t) => {
    const { child, heard, closed } = await started(t, ['npm', 'start'])
    process.kill(-child.pid!, 'SIGINT')
    assert.deepEqual(await closed, [0, null], heard.output)
    assert.equal(heard.output.match(/"stopping"/g)?.length, 1, heard.output)
    assert.match(heard.output, /"stopped"/)
  })
})
