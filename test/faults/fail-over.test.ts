/** Behind a pooler connections survive a fail-over, but the memory of stored flows must not. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { pino } from 'pino'
import type postgres from 'postgres'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { SUPERUSER } from '../../lib/db/embedded/start.ts'
import { type Database, openDatabase } from '../../lib/db/index.ts'
import { watchMemory } from '../../lib/traffic/index.ts'
import { startOwnServer } from '../support/own-server.ts'
import { type FaultyProxy, startProxy } from '../support/proxy.ts'
import { startSwitch } from '../support/switch.ts'
import { until } from '../support/until.ts'

const EVERY_MS = 1_000

interface Server {
  proxy: FaultyProxy
  sql: postgres.Sql
}

let a: Server
let b: Server
let pooler: Awaited<ReturnType<typeof startSwitch>>
let db: Database
let app: ReturnType<typeof createApp>
let deps: ReturnType<typeof buildDeps>

async function startServer(): Promise<Server> {
  const { folder, port, sql } = await startOwnServer({})
  return { proxy: await startProxy({ host: folder, port, user: SUPERUSER, database: 'postgres' }), sql }
}

before(async () => {
  a = await startServer()
  b = await startServer()
  pooler = await startSwitch(a.proxy.connection)
  const log = pino({ level: 'silent' })
  const settings = { poolMax: 8, statementTimeoutMs: 30_000, applicationName: 'fail-over', log }
  db = openDatabase({ connection: pooler.connection, prepare: false, ...settings })
  deps = buildDeps({ config: loadConfig({ NODE_ENV: 'test' }), db, log })
  app = createApp(deps, routes)
})

after(async () => {
  await db.end(1_000)
  await pooler.close()
  for (const { proxy } of [a, b]) await proxy.close()
})

let made = 0
const flows = (count: number) =>
  Array.from({ length: count }, () => {
    made++
    const addresses = { pod_ip: '10.5.0.1', traffic_in_out_ip: `10.6.${made >> 8}.${made & 255}` }
    const rest = {
      pod_port: '0',
      traffic_in_out_port: '443',
      traffic_type: 'EGRESS',
      decision: 'ALLOW',
      ip_protocol: 'TCP',
    }
    return { uuid: `f-${made}`, pod_name: 'web-0', time_stamp: '2024-05-01T10:00:00', ...addresses, ...rest }
  })

async function post(body: object[]): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json' }
  const answer = await app.request('/pod/traffic/batch', { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, text: await answer.text() }
}
const taken = (count: number) => ({ status: 200, text: String(count) })
const storedIn = async ({ sql }: Server) => (await sql`select from traffic`).length

test('flows that only the old server stored are stored by the new one when they are posted again', {
  timeout: 900_000,
}, async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const watch = watchMemory({ db, seen: deps.seen, log: deps.log, everyMs: EVERY_MS })
  t.after(() => watch.stop())
  await post(flows(1))
  t.mock.timers.tick(EVERY_MS)
  await until('the first question is answered', () => deps.seen.size === 0)

  const batch = flows(5)
  assert.deepEqual(await post(batch), taken(5))
  assert.deepEqual(await post(batch), taken(0))
  const { accepted } = pooler
  const { generation } = db
  for (const [next, old] of [
    [b, a],
    [a, b],
  ] as const) {
    await old.sql`truncate traffic`
    await pooler.to(next.proxy.connection)
    // The old memory is used until the next check of the server.
    assert.deepEqual(await post(batch), taken(0))
    t.mock.timers.tick(EVERY_MS)
    await until('all is forgotten', () => deps.seen.size === 0)
    assert.deepEqual(await post(batch), taken(5))
    assert.equal(await storedIn(next), 5)
    assert.deepEqual(await post(batch), taken(0))
  }
  assert.equal(pooler.accepted, accepted, 'connections survive')
  assert.equal(db.generation, generation)
})

test('flows whose answers were lost are stored once on the new server when they are posted again', {
  timeout: 900_000,
}, async () => {
  const [copied, missing] = [flows(3), flows(2)]
  a.proxy.judge((sql) => (sql.includes('insert into traffic') ? 'answer lost' : 'answered'))
  assert.equal((await post([...copied, ...missing])).status, 503)
  const rows =
    await a.sql`select uuid, pod_name, time_stamp::text, pod_ip, traffic_in_out_ip, pod_port, traffic_in_out_port, traffic_type, decision, ip_protocol from traffic where uuid in ${a.sql(copied.map(({ uuid }) => uuid))}`
  assert.equal(rows.length, 3)
  const before = await storedIn(b)
  await b.sql`insert into traffic ${b.sql([...rows])}`
  await pooler.to(b.proxy.connection)
  assert.deepEqual(await post([...copied, ...missing]), taken(5))
  assert.equal(await storedIn(b), before + 5)
  assert.deepEqual(await post([...copied, ...missing]), taken(0))
})
