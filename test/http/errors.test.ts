import assert from 'node:assert/strict'
import test from 'node:test'
import { createApp } from '../../lib/app/app.ts'
import { classify, DatabaseBusy, DatabaseUnavailable } from '../../lib/db/index.ts'
import { HttpError, noData } from '../../lib/errors.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/route.ts'
import { startApp } from '../support/app.ts'

const app = await startApp({ CORS_ORIGINS: '*' })
const SECRET = 'hunter2-secret-value'
const thrown: Record<string, () => unknown> = {
  http: () => Promise.reject(new HttpError(409, 'already so', { 'x-why': 'because' })),
  'no-data': () => Promise.reject(noData()),
  busy: () => Promise.reject(new DatabaseBusy('canceling statement due to statement timeout', '57014')),
  deadlock: () => Promise.reject(classify({ code: '40P01', message: 'deadlock detected' })),
  unavailable: () => Promise.reject(new DatabaseUnavailable(`connect ECONNREFUSED 10.0.0.1 ${SECRET}`, 'ECONNREFUSED')),
  unknown: () => Promise.reject(new Error(SECRET)),
  coded: () => Promise.reject(Object.assign(new Error(SECRET), { code: 'EACCES' })),
  sync: () => {
    throw new TypeError(SECRET)
  },
  'division by zero': () => app.db.read((sql) => sql`select 1 / ${0}::int from (select ${SECRET}::text) x`),
  'unique violation': () =>
    app.db.ingest(
      (sql) => sql`insert into service (svc_ip, time_stamp) select ${SECRET}, now() from generate_series(1, 2)`,
    ),
  'bad input': () => app.db.read((sql) => sql`select ${SECRET}::text::int`),
  'not null': () => app.db.ingest((sql) => sql`insert into service (svc_ip, svc_name) values ('x', ${SECRET})`),
  'syntax error': () => app.db.read((sql) => sql`selekt ${SECRET}::text`),
}
const probe = createApp(
  app.deps,
  Object.entries(thrown).map(([name, fail]) =>
    route().get(`/${name.replaceAll(' ', '-')}`, access('open'), async (c) => {
      await fail()
      return c.text('not reached')
    }),
  ),
)
async function ask(name: string) {
  app.logged.length = 0
  const answer = await probe.request(`/${name.replaceAll(' ', '-')}`, { headers: { 'x-request-id': 'request-1' } })
  return { status: answer.status, headers: answer.headers, text: await answer.text(), log: JSON.stringify(app.logged) }
}

test('an HttpError is answered with its status, headers and message, as plain text', async () => {
  const answer = await ask('http')
  assert.deepEqual([answer.status, answer.text], [409, 'already so'])
  assert.equal(answer.headers.get('x-why'), 'because')
  assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.equal(answer.headers.get('x-request-id'), 'request-1')
  assert.ok(!answer.log.includes('request failed'))
})

test('the error of a missing row is 404 `No data found`', async () => {
  const answer = await ask('no-data')
  assert.deepEqual([answer.status, answer.text], [404, 'No data found'])
})

test('a busy database is 503 with its message and Retry-After', async () => {
  for (const [name, message] of [
    ['busy', 'canceling statement due to statement timeout'],
    ['deadlock', 'deadlock detected'],
  ] as const) {
    const answer = await ask(name)
    assert.deepEqual([answer.status, answer.text], [503, `database busy: ${message}; retry in 5 seconds`])
    assert.equal(answer.headers.get('retry-after'), '5')
  }
})

test('an unreachable database is 503 without its address', async () => {
  const answer = await ask('unavailable')
  assert.deepEqual([answer.status, answer.text], [503, 'database unavailable; retry in a moment'])
  assert.equal(answer.headers.get('retry-after'), '1')
})

for (const name of [
  'unknown',
  'coded',
  'sync',
  'division by zero',
  'unique violation',
  'bad input',
  'not null',
  'syntax error',
]) {
  test(`${name}: 500 with a fixed text and the request id of the log line, without SQL or values`, async () => {
    const answer = await ask(name)
    assert.deepEqual([answer.status, answer.text], [500, 'internal error, request request-1'])
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    const failures = app.logged.filter((line) => line.msg === 'request failed')
    assert.equal(failures.length, 1)
    assert.deepEqual([failures[0]!.level, failures[0]!.requestId], [50, 'request-1'])
  })
}

test('an error of the database is logged with its code, without statement or values', async () => {
  for (const [name, code] of Object.entries({
    'division by zero': '22012',
    'unique violation': '23505',
    'bad input': '22P02',
    'not null': '23502',
  })) {
    const { log } = await ask(name)
    assert.ok(log.includes(`"code":"${code}"`), log)
    for (const secret of [SECRET, 'select', 'insert']) assert.ok(!log.includes(secret), `${name}: ${log}`)
  }
})

test('an error in our code is logged with its source file', async () => {
  for (const name of ['unknown', 'coded', 'sync']) assert.match((await ask(name)).log, /errors\.test\.ts/, name)
})
