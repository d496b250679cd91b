/** Memory of the proxy for the longest list, in front of a real broker: a few buffers for each reader. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { before, describe, type TestContext, test } from 'node:test'
import { type Broker, get, residentMb, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { type EdgeProcess, spawnEdge } from './support.ts'

const ROWS = 20_000
/** The requirement is 20. The bytes read of one list may add up to this before V8 collects garbage. */
const MAX_GROWTH_MB = 16
/** For six lists, which are 60 MiB: V8 of Node 24 collects garbage later. */
const MAX_GROWTH_OF_MANY_MB = 32
const LIST = `/api/pod/traffic?limit=${ROWS}`
const READERS = 6
/** After so many requests the memory of the compiler and its caches no longer grows. */
const WARM_UP_REQUESTS = 3_000
const ROW = Buffer.from('{"uuid":"')

let broker: Broker
let edge: EdgeProcess

/** Reads the list to its end and counts its rows; waits for `pause` after the head. */
async function readList(pause?: Promise<void>): Promise<{ rows: number; bytes: number }> {
  const [incoming] = (await once(http.get(edge.url + LIST, { agent: false }), 'response')) as [http.IncomingMessage]
  incoming.pause()
  await pause
  assert.equal(incoming.statusCode, 200)
  let tail = Buffer.alloc(0)
  let rows = 0
  let bytes = 0
  for await (const chunk of incoming) {
    bytes += (chunk as Buffer).length
    const text = Buffer.concat([tail, chunk as Buffer])
    for (let at = text.indexOf(ROW); at >= 0; at = text.indexOf(ROW, at + 1)) rows++
    tail = text.subarray(Math.max(0, text.length - ROW.length + 1))
  }
  assert.equal(tail.subarray(-2).toString(), '}]')
  return { rows, bytes }
}

/** Checks the greatest growth of resident memory while `work` runs. */
async function growthMb(t: TestContext, work: () => Promise<unknown>, maxMb = MAX_GROWTH_MB): Promise<void> {
  const first = residentMb(edge.pid)?.now
  if (first === undefined) return t.skip('memory of a process can be read on Linux only')
  let most = first
  const watch = setInterval(() => {
    most = Math.max(most, residentMb(edge.pid)!.now)
  }, 5)
  await work()
  clearInterval(watch)
  const growth = Math.max(most, residentMb(edge.pid)!.now) - first
  t.diagnostic(`${first.toFixed(1)} MiB resident before, ${growth.toFixed(1)} MiB more at the most`)
  assert.ok(growth < maxMb, `${growth} MiB more, of ${maxMb}`)
}

describe('memory of the proxy', { timeout: 900_000, skip: onlyFull }, () => {
  before(async () => {
    const database = await createTestDatabase()
    await database.adminSql`
      insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port,
                           decision, time_stamp, peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name)
      select gen_random_uuid()::text, 'busy', 'shop', '10.1.0.1', '0', 'TCP', 'EGRESS', '10.2.' || n / 65536 || '.' || n, '443',
             'ALLOW', timestamp '2026-01-01' + n * interval '1 second', 'pod', 'shop', 'payments-7d4b9c6f5-' || n, gen_random_uuid()::text, 'Deployment', 'payments'
      from generate_series(1, ${ROWS}::int) n`
    broker = await startBroker({ databaseUrl: database.url, env: { BROKER_READ_MEMORY_BUDGET_MB: '512' } })
    edge = await spawnEdge({ BROKER_URL: broker.url }, { isForgetful: true })
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
    await Promise.all(Array.from({ length: WARM_UP_REQUESTS }, () => get(`${edge.url}/api/pod/name/nobody`, { agent })))
    agent.destroy()
  })

  test(`a list of ${ROWS} rows needs little memory`, async (t) => {
    await growthMb(t, async () => {
      const { rows, bytes } = await readList()
      t.diagnostic(`${(bytes / 1024 / 1024).toFixed(1)} MiB`)
      assert.equal(rows, ROWS)
    })
  })

  test('ten lists one after the other need as little memory as one', async (t) => {
    await growthMb(t, async () => {
      for (let i = 0; i < 10; i++) assert.equal((await readList()).rows, ROWS)
    })
  })

  test(`${READERS} lists at once need little memory, while their readers pause until all have begun`, async (t) => {
    await growthMb(
      t,
      async () => {
        let go = () => {}
        const pause = new Promise<void>((resolve) => {
          go = resolve
        })
        const readers = Array.from({ length: READERS }, () => readList(pause))
        await until('all are under way', async () =>
          new RegExp(`^edge_http_requests_in_flight ${READERS}$`, 'm').test((await get(`${edge.admin}/metrics`)).text),
        )
        let last = -1
        await until('nothing moves', async () => {
          for (let i = 0; i < 50; i++) await get(`${edge.url}/healthz`)
          const now = residentMb(edge.pid)?.now ?? 0
          const isStill = Math.abs(now - last) < 0.1
          last = now
          return isStill
        })
        go()
        for (const { rows } of await Promise.all(readers)) assert.equal(rows, ROWS)
      },
      MAX_GROWTH_OF_MANY_MB,
    )
  })
})
