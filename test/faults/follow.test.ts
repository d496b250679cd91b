import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { SUPERUSER } from '../../lib/db/embedded/start.ts'
import { startEdge } from '../edge/support.ts'
import type { Broker } from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { startOwnServer } from '../support/own-server.ts'
import { until } from '../support/until.ts'
import { Storm } from './follow-storm.ts'

/** `npm run bench:follow` sets these: a kill every five seconds for that long, and a report of the delays. */
const SECONDS = Number(process.env.FOLLOW_SECONDS ?? 0)
const FOLLOWERS = Number(process.env.FOLLOWERS ?? depth(6, 60))
const KILL_MS = 5_000
const KILLS = SECONDS > 0 ? (SECONDS * 1_000) / KILL_MS : depth(1, 12)
const REPLICAS = SECONDS > 0 ? 3 : depth(2, 3)
const FLOWS_BETWEEN = depth(150, 400)

// Followers wait for the oldest transaction of the server, so no other test may run one: a server of our own.
const { folder, port, sql } = await startOwnServer({})
const databaseUrl = `postgres://${SUPERUSER}@${encodeURIComponent(folder)}:${port}/postgres`

/** The replicas that are left after the first test. */
let brokers: Broker[]

test(`followers of ${REPLICAS} replicas, of which one after the other is killed, have each flow once`, async (t) => {
  const storm = await Storm.start({ databaseUrl, replicas: REPLICAS, followers: FOLLOWERS, pauseMs: 20 })
  for (let n = 0; n < KILLS; n++) {
    const before = storm.stored
    const pause = SECONDS > 0 ? delay(KILL_MS) : undefined
    await until('more flows', () => storm.stored >= before + FLOWS_BETWEEN)
    await until('every reader has some', () => storm.readers.every(({ flows }) => flows.length > 0))
    await pause
    await storm.killOne()
  }
  await storm.finish()
  brokers = storm.brokers
  const rows = await sql<{ uuid: string }[]>`select uuid from traffic order by uuid`
  const stored = Uint32Array.from(rows, ({ uuid }) => storm.numberOf(uuid)).sort()
  assert.equal(stored.length, storm.stored)
  for (const { flows } of storm.readers) assert.deepEqual(Uint32Array.from(flows).sort(), stored)
  assert.ok(storm.readers.some(({ connections }) => connections > 1))

  const at = (share: number) => storm.delayMs(share)
  t.diagnostic(
    `${storm.stored} flows, ${FOLLOWERS} followers, ${storm.kills} kills; from the answer to a post to the line: ` +
      `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms; ` +
      `refused: ${storm.refusals.length}`,
  )
})

test('a reader behind the edge proxy has each flow once, as soon as another one', async () => {
  await sql`truncate traffic`
  const [left, ...others] = brokers
  await Promise.all(others.map((broker) => broker.stop()))
  const storm = await Storm.start({ databaseUrl, replicas: [left!], followers: 1, pauseMs: 20 })
  const edge = await startEdge(storm.brokers[0]!.url)
  storm.addReader(`http://127.0.0.1:${edge.port}`)
  // A proxy that waits for the end of an answer would pass on nothing.
  await until('flows through the proxy', () => storm.readers[1]!.flows.length > FLOWS_BETWEEN)
  await storm.finish()
  assert.equal(storm.readers[1]!.connections, 1)
  for (const { flows } of storm.readers) assert.equal(new Set(flows).size, storm.stored)
  for (const { flows } of storm.readers) assert.equal(flows.length, storm.stored)
})
