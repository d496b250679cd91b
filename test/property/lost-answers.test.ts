/** Random histories of posts whose answers from the database are lost at random points (docs/contract.md#deduplication). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { depth } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const RUNS = depth(10, 50)
const MAX_POSTS = 60

const app = await startLossyApp()

/** A flow in small numbers, so that many flows are equal or differ in a port only. Each has its own uuid. */
interface Sketch {
  subject: number
  protocol: 'TCP' | 'UDP'
  port: number
  hasNull: boolean
}

const sketch: fc.Arbitrary<Sketch> = fc.record({
  subject: fc.nat(5),
  protocol: fc.constantFrom('TCP', 'UDP'),
  port: fc.nat(2),
  hasNull: fc.nat(9).map((n) => n === 0),
})

interface Client {
  posts: { body: Sketch[]; single: boolean }[]
}

const client: fc.Arbitrary<Client> = fc.record({
  posts: fc.array(fc.record({ body: fc.array(sketch, { minLength: 1, maxLength: 6 }), single: fc.boolean() }), {
    minLength: 1,
    maxLength: 4,
  }),
})
const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Fate>('answered') },
  { weight: 3, arbitrary: fc.constant<Fate>('answer lost') },
  { weight: 1, arbitrary: fc.constant<Fate>('question lost') },
  { weight: 1, arbitrary: fc.constant<Fate>('left') },
)

let made = 0
let runs = 0

function realize(run: number, { subject, protocol, port, hasNull }: Sketch) {
  made++
  return {
    uuid: `m-${made}`,
    pod_name: `m-${made}`,
    pod_namespace: 'shop',
    pod_ip: hasNull ? null : `10.${run >> 8}.${run & 255}.${subject}`,
    pod_port: '0',
    ip_protocol: protocol,
    traffic_type: 'EGRESS',
    traffic_in_out_ip: '10.4.0.1',
    traffic_in_out_port: String(port),
    decision: 'ALLOW',
    time_stamp: '2024-05-01T10:00:00',
  }
}
type Flow = ReturnType<typeof realize>

/** Whether `stored` may make the flow a duplicate. The caller passes flows with a null those of their body only. */
const isLike = (one: Flow, stored: Flow) =>
  one.pod_ip === stored.pod_ip &&
  (one.traffic_in_out_port === stored.traffic_in_out_port || (one.ip_protocol === 'UDP' && one.pod_ip !== null))

const isQuiet = async () => {
  const rows = await app.sql`
    select from pg_stat_activity
    where datname = current_database() and application_name = 'lossy' and state = 'active' and query like '%insert into traffic%'`
  return rows.length === 0
}

test('each stored flow is counted once in the received answers and given once to the evaluator', {
  timeout: 900_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(client, { minLength: 1, maxLength: 4 }),
      fc.array(fate, { maxLength: 25 }),
      async (clients, fates) => {
        const run = runs++
        const sent: Flow[][] = []
        const metric = await app.counted()
        let told = 0
        let posts = 0
        app.lose('insert into traffic', ...fates)
        // Like an agent: posts the same flows until they are accepted, and then the next.
        const work = clients.map(async ({ posts: bodies }) => {
          for (const { body, single } of bodies) {
            const all = (single ? body.slice(0, 1) : body).map((one) => realize(run, one))
            sent.push(all)
            for (;;) {
              assert.ok(posts++ < MAX_POSTS)
              const { status, text } = await app.post(
                single ? '/pod/traffic' : '/pod/traffic/batch',
                single ? all[0] : all,
              )
              if (status === 200) {
                told += single ? (text === 'null' ? 0 : 1) : Number(text)
                break
              }
              assert.equal(status, 503, text)
              if (fates.includes('left')) await until('nothing is left under way', isQuiet)
            }
          }
        })
        await Promise.all(work)
        const flows = sent.flat()
        const rows = await app.sql<
          { uuid: string }[]
        >`select uuid from traffic where uuid in ${app.sql(flows.map(({ uuid }) => uuid))}`
        assert.equal(told, rows.length, 'told and stored')
        assert.equal((await app.counted()).inserted - metric.inserted, rows.length, 'metric')
        const heard = await app.heard()
        const stored = new Set(rows.map(({ uuid }) => uuid))
        for (const { uuid } of flows) assert.equal(heard.get(uuid) ?? 0, stored.has(uuid) ? 1 : 0, `heard of ${uuid}`)
        for (const all of sent) {
          for (const one of all) {
            const likes = one.pod_ip === null ? all : flows
            assert.ok(
              likes.some((like) => stored.has(like.uuid) && isLike(one, like)),
              'a flow is lost',
            )
          }
        }
      },
    ),
    { numRuns: RUNS * 2 },
  )
})
