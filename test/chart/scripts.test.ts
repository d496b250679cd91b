/** The scripts of pods of the chart: the one of `helm test` runs on a live broker, the backup on a live PostgreSQL. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { close, listen } from '../../lib/http/server/listen.ts'
import { CHART } from '../../scripts/chart-values.ts'
import { findPrograms, type SystemPostgres, startSystemPostgres } from '../install/system-postgres.ts'
import { startApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { startStub } from '../support/stub.ts'

const read = (name: string) => readFileSync(new URL(`files/${name}`, CHART), 'utf8')

interface End {
  readonly code: number
  readonly printed: string
}

const run = (program: string, args: readonly string[], env: NodeJS.ProcessEnv) =>
  new Promise<End>((resolve) => {
    execFile(program, args, { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), printed: stdout + stderr }),
    )
  })

const app = await startApp()
const { server, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
after(() => close(server, 0))
const BROKER_URL = `http://127.0.0.1:${address.port}`

/** Runs the script like the pod of `helm test`, by default without retries. */
const ready = (env: NodeJS.ProcessEnv) =>
  run(process.execPath, ['--input-type=module', '--eval', read('ready.mjs')], { PATIENCE_MS: '0', ...env })

test('helm test passes when the broker is healthy, directly and through the edge proxy', async () => {
  assert.deepEqual(await ready({ BROKER_URL }), { code: 0, printed: `${BROKER_URL}/health is healthy\n` })
  const { code, printed } = await ready({ BROKER_URL, EDGE_URL: BROKER_URL })
  assert.deepEqual([code, printed.split('\n').length], [0, 3])
})

test('helm test fails with the reason when there is no answer, or an unhealthy one', async () => {
  const nobody = `http://127.0.0.1:${await freePort()}`
  for (const env of [{ BROKER_URL: nobody }, { BROKER_URL, EDGE_URL: nobody }]) {
    const { code, printed } = await ready(env)
    assert.equal(code, 1)
    assert.match(printed, new RegExp(`${nobody}/health does not answer: .*ECONNREFUSED`))
  }
  const sick = await startStub(() => ({ status: 503, json: 'Database unavailable' }))
  assert.match((await ready({ BROKER_URL: sick.url })).printed, /\/health answers 503: .*Database unavailable/)
})

test('helm test waits for a broker that becomes healthy', async () => {
  let asked = 0
  const late = await startStub(() =>
    ++asked < 2 ? { status: 503, json: 'Database unavailable' } : { text: 'Healthy!' },
  )
  assert.equal((await ready({ BROKER_URL: late.url, PATIENCE_MS: '60000' })).code, 0)
})

const programs = findPrograms()
const skip = programs === undefined ? 'this machine has no PostgreSQL with its client programs' : false
describe('the backup', { skip }, () => {
  let postgres: SystemPostgres
  const folder = mkdtempSync(join(tmpdir(), 'broker-backup-'))
  const own = join(folder, 'telemetry')
  after(() => rmSync(folder, { recursive: true, force: true }))
  before(async () => {
    postgres = await startSystemPostgres(programs!, 'a-password')
    writeFileSync(join(folder, 'password'), 'a-password\n')
  })
  const dumps = () => readdirSync(own).sort()
  const backup = (env: NodeJS.ProcessEnv = {}) =>
    run('sh', ['-c', read('backup.sh')], {
      ...{ PATH: `${programs}:${process.env.PATH}`, BACKUP_FOLDER: folder, BACKUP_NAME: 'telemetry', BACKUP_KEEP: '2' },
      ...{ PGHOST: '127.0.0.1', PGPORT: String(postgres.port), PGUSER: 'broker', PGDATABASE: 'broker' },
      ...{ DATABASE_PASSWORD_FILE: join(folder, 'password'), ...env },
    })

  test('writes one complete dump, and deletes the oldest', async () => {
    mkdirSync(own)
    for (const name of ['2025-01-01T00-00-00Z.dump', '2025-01-02T00-00-00Z.dump', '2025-01-03T00-00-00Z.dump.part'])
      writeFileSync(join(own, name), '')
    const { code, printed } = await backup()
    assert.equal(code, 0, printed)
    const [old, made, ...others] = dumps()
    assert.deepEqual([old, others], ['2025-01-02T00-00-00Z.dump', []])
    assert.match(made!, /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.dump$/)
    assert.match(printed, /deleted: .*2025-01-01/)
    const list = await run(join(programs!, 'pg_restore'), ['--list', join(own, made!)], {})
    assert.match(list.printed, /dbname: broker/)
  })

  test('accepts the whole address in DATABASE_URL', async () => {
    const DATABASE_URL = `postgres://broker:a-password@127.0.0.1:${postgres.port}/broker`
    const { code, printed } = await backup({
      DATABASE_URL,
      DATABASE_PASSWORD_FILE: '',
      PGHOST: '',
      PGUSER: '',
      PGDATABASE: '',
      PGPORT: '',
    })
    assert.equal(code, 0, printed)
  })

  test('a failed backup prints the reason, leaves no file behind and deletes nothing', async () => {
    const present = dumps()
    writeFileSync(join(folder, 'wrong'), 'another-password')
    const { code, printed } = await backup({ DATABASE_PASSWORD_FILE: join(folder, 'wrong'), BACKUP_KEEP: '1' })
    assert.notEqual(code, 0)
    assert.match(printed, /password authentication failed/)
    assert.deepEqual(dumps(), present)
  })
})
