import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { pino } from 'pino'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'

const RUNS = depth(10, 50)

const first = await startApp()

/** A second replica on the same database. */
const log = pino({ level: 'silent' })
const config = loadConfig({ NODE_ENV: 'test' })
const db = openDatabase({
  connection: first.url,
  poolMax: 8,
  statementTimeoutMs: 30_000,
  waitMs: 60_000,
  prepare: true,
  applicationName: 'second',
  log,
})
const deps = buildDeps({ config, db, log })
const second = { app: createApp(deps, routes), deps }
after(() => db.end(1_000))

type Text = string | null

/** A flow in small numbers. Each run derives its own addresses and uuids, so the table need not be emptied. */
interface Sketch {
  uuid: number
  isNextDay: boolean
  pod: number | null
  podPort: Text
  protocol: Text
  type: Text
  peer: number | null
  peerPort: Text
  decision: Text
}

interface Flow {
  uuid: string
  time_stamp: string
  pod_ip: Text
  pod_port: Text
  ip_protocol: Text
  traffic_type: Text
  traffic_in_out_ip: Text
  traffic_in_out_port: Text
  decision: Text
}

// Greater than the small uuids, which are meant to collide.
let fresh = 1_000
const uuid = fc.oneof({ weight: 1, arbitrary: fc.nat(5) }, { weight: 5, arbitrary: fc.constant(-1).map(() => fresh++) })
const orNull = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 12, nil: null })

const sketch: fc.Arbitrary<Sketch> = fc.record({
  uuid,
  isNextDay: fc.boolean(),
  pod: orNull(fc.nat(1)),
  podPort: orNull(fc.constantFrom('0', '1', '2')),
  protocol: orNull(fc.constantFrom('UDP', 'UDP', 'TCP', 'SCTP', 'udp')),
  type: orNull(fc.constantFrom('INGRESS', 'INGRESS', 'INGRESS', 'EGRESS')),
  peer: orNull(fc.nat(2)),
  peerPort: orNull(fc.constantFrom('0', '1', '2')),
  decision: orNull(fc.constantFrom('ALLOW', 'ALLOW', 'ALLOW', 'DROP')),
})

let runs = 0
const prefixOf = (run: number) => `10.${run >> 8}.${run & 255}`

// The third peer is the second one in another spelling.
function realize(run: number, s: Sketch): Flow {
  const prefix = prefixOf(run)
  const peers = [`${prefix}.101`, `${prefix}.102`, `::ffff:${prefix}.102`]
  return {
    uuid: `${run}/${s.uuid}`,
    time_stamp: `2024-05-0${s.isNextDay ? 2 : 1}T10:00:00`,
    pod_ip: s.pod === null ? null : `${prefix}.${s.pod + 1}`,
    pod_port: s.podPort,
    ip_protocol: s.protocol,
    traffic_type: s.type,
    traffic_in_out_ip: s.peer === null ? null : peers[s.peer]!,
    traffic_in_out_port: s.peerPort,
    decision: s.decision,
  }
}

const canonical = (flow: Flow): Flow => ({
  ...flow,
  traffic_in_out_ip: flow.traffic_in_out_ip?.replace('::ffff:', '') ?? null,
})

type Member = 'pod_ip' | 'pod_port' | 'traffic_type' | 'traffic_in_out_ip' | 'traffic_in_out_port' | 'decision'
const SIX: Member[] = ['pod_ip', 'pod_port', 'traffic_type', 'traffic_in_out_ip', 'traffic_in_out_port', 'decision']
const without = (left: Member) => SIX.filter((member) => member !== left)

// SQL equality: a null equals nothing.
const equalIn = (members: Member[], a: Flow, b: Flow) => members.every((m) => a[m] !== null && a[m] === b[m])

/** The table rule of docs/contract.md#deduplication. The protocol of the stored row does not matter. */
const matches = (event: Flow, row: Flow) =>
  event.ip_protocol === 'UDP'
    ? equalIn(without('pod_port'), event, row) || equalIn(without('traffic_in_out_port'), event, row)
    : equalIn(SIX, event, row)

const isOfUuid = (a: Flow, b: Flow) => a.uuid === b.uuid && a.time_stamp === b.time_stamp

const sevenOf = (flow: Flow) => JSON.stringify([flow.ip_protocol, ...SIX.map((member) => flow[member])])
const hasNull = (flow: Flow) => SIX.some((member) => flow[member] === null)

/**
 * Stores the flows of one body in turn. A flow with a null is compared with earlier flows of the body, every flow with
 * the stored rows. If a flow without a null was not stored because its uuid was taken, its repeat may still be stored.
 */
function storeInTurn(rows: Flow[], body: Flow[]): number {
  const before = rows.length
  const inBody = new Set<string>()
  for (const flow of body.map(canonical)) {
    const seven = sevenOf(flow)
    const repeats = hasNull(flow) && inBody.has(seven)
    inBody.add(seven)
    if (!repeats && !rows.some((row) => isOfUuid(flow, row) || matches(flow, row))) rows.push(flow)
  }
  return rows.length - before
}

type App = { app: typeof first.app }

async function send({ app }: App, body: Flow[], single: boolean): Promise<number> {
  const path = single ? '/pod/traffic' : '/pod/traffic/batch'
  const headers = { 'content-type': 'application/json' }
  const answer = await app.request(path, { method: 'POST', headers, body: JSON.stringify(single ? body[0] : body) })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  const value = JSON.parse(text)
  if (!single) return value
  assert.ok(value === null || value.uuid === body[0]!.uuid)
  return value === null ? 0 : 1
}

async function storedIn(run: number): Promise<Flow[]> {
  const rows = await first.sql<Flow[]>`
    select uuid, replace(time_stamp::text, ' ', 'T') as time_stamp, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port, decision
    from traffic where starts_with(uuid, ${`${run}/`})`
  return [...rows]
}

const namesOf = (rows: Flow[]) => rows.map((row) => `${row.time_stamp} ${row.uuid}`).sort()

interface Step {
  body: Sketch[]
  single: boolean
  forget: boolean
}

const step: fc.Arbitrary<Step> = fc
  .record({
    body: fc.array(sketch, { minLength: 1, maxLength: 8 }),
    single: fc.boolean(),
    forget: fc.boolean(),
  })
  .map((one) => (one.single ? { ...one, body: one.body.slice(0, 1) } : one))

test('after posts in sequence the broker has stored the same flows as the model', {
  timeout: 900_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 10 }), async (steps) => {
      const run = runs++
      const rows: Flow[] = []
      for (const { body, single, forget } of steps) {
        if (forget) first.deps.seen.clear()
        const flows = body.map((one) => realize(run, one))
        assert.equal(await send(first, flows, single), storeInTurn(rows, flows))
      }
      assert.deepEqual(namesOf(await storedIn(run)), namesOf(rows))
    }),
    { numRuns: RUNS * 4 },
  )
})

test('a body of many flows is stored as if each had been posted in turn', { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(sketch, { minLength: 10, maxLength: 150 }), { minLength: 1, maxLength: 3 }),
      async (bodies) => {
        const run = runs++
        const rows: Flow[] = []
        for (const body of bodies) {
          const flows = body.map((one) => realize(run, one))
          assert.equal(await send(first, flows, false), storeInTurn(rows, flows))
        }
        assert.deepEqual(namesOf(await storedIn(run)), namesOf(rows))
      },
    ),
    { numRuns: RUNS },
  )
})

/** Whether two stored rows violate the rule of one of the unique indexes. */
const collide = (a: Flow, b: Flow) =>
  isOfUuid(a, b) ||
  equalIn(SIX, a, b) ||
  (a.ip_protocol === 'UDP' && b.ip_protocol === 'UDP' && (matches(a, b) || matches(b, a)))

function assertSound(rows: Flow[], bodies: Flow[][], inserted: number): void {
  assert.equal(inserted, rows.length, 'inserts reported and rows stored')
  for (const [i, row] of rows.entries()) {
    const twin = rows.slice(i + 1).find((other) => collide(row, other))
    assert.equal(twin, undefined, `stored beside ${JSON.stringify(row)}: ${JSON.stringify(twin)}`)
  }
  for (const body of bodies) {
    const inBody = new Set<string>()
    for (const flow of body.map(canonical)) {
      const isRepeat = hasNull(flow) && inBody.has(sevenOf(flow))
      inBody.add(sevenOf(flow))
      assert.ok(
        isRepeat || rows.some((row) => isOfUuid(flow, row) || matches(flow, row)),
        `lost: ${JSON.stringify(flow)}`,
      )
    }
  }
}

interface Client {
  posts: { body: Sketch[]; single: boolean }[]
  replica: boolean
}

const client: fc.Arbitrary<Client> = fc.record({
  posts: fc.array(step, { minLength: 1, maxLength: 4 }),
  replica: fc.boolean(),
})

test('clients of two replicas at once store each flow once and lose none', { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(client, { minLength: 2, maxLength: 6 }), fc.boolean(), async (clients, echoed) => {
      const run = runs++
      const bodies: Flow[][] = []
      const work = clients.map(async ({ posts, replica }) => {
        let inserted = 0
        for (const { body, single } of posts) {
          const flows = body.map((one) => realize(run, one))
          bodies.push(flows)
          inserted += await send(replica ? second : first, flows, single)
        }
        return inserted
      })
      // The same posts to the other replica, as agents send them when an answer was lost.
      const echo = !echoed
        ? []
        : clients.map(async ({ posts, replica }) => {
            let inserted = 0
            for (const { body, single } of posts)
              inserted += await send(
                replica ? first : second,
                body.map((one) => realize(run, one)),
                single,
              )
            return inserted
          })
      const counts = await Promise.all([...work, ...echo])
      assertSound(
        await storedIn(run),
        bodies,
        counts.reduce((sum, one) => sum + one, 0),
      )
    }),
    { numRuns: RUNS * 2 },
  )
})

test('many concurrent clients of one replica store each flow once and lose none', { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (posts) => {
      const run = runs++
      const bodies = posts.map(({ body }) => body.map((one) => realize(run, one)))
      const counts = await Promise.all(posts.map(({ single }, i) => send(first, bodies[i]!, single)))
      assertSound(
        await storedIn(run),
        bodies,
        counts.reduce((sum, one) => sum + one, 0),
      )
    }),
    { numRuns: RUNS },
  )
})
