/** The feed of running containers with its longest items, from real processes: whole or cut, in bounded memory. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { before, describe, test } from 'node:test'
import { type Broker, get, metric, residentMb, startBroker } from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'

const CONTAINERS = 450
const LIMIT = 200
const ENTRY_BYTES = 1_000
const ENTRIES = depth(50, 400)
const CLIENTS = depth(3, 6)
const HEAP_MB = 96
/** A page needs 9 MiB of it, so that two are read at once. */
const BUDGET_MB = 20
/** The heap, the program, its libraries and the loader, and the pieces of two pages. A whole page would exceed it. */
const CEILING_MB = HEAP_MB + 140 + 2 * 32

let database: TestDatabase
let broker: Broker
const settings = {
  BROKER_READ_MEMORY_BUDGET_MB: String(BUDGET_MB),
  BROKER_READ_ACQUIRE_WAIT_MS: '900000',
  JOBS: 'external',
}
const start = () =>
  startBroker({ databaseUrl: database.url, env: settings, nodeArgs: [`--max-old-space-size=${HEAP_MB}`] })

interface Read {
  readonly status: number
  readonly bytes: number
  /** Names of the containers in the page, in order. */
  readonly names: string[]
  readonly nextAfter: string | null
  readonly isCut: boolean
}

const NAME = /"container":"(c-\d+)"/g
const TAIL = /\],"nextAfter":(?:null|"([0-9a-f]+)")\}$/

/** Reads a page to its end and keeps only the names; waits for `pause` after the first bytes. */
async function readPage(of: Broker, query = '', pause?: () => Promise<unknown>): Promise<Read> {
  const outgoing = http.get(`${of.url}/attestations/running?limit=${LIMIT}${query}`, { agent: false })
  const [incoming] = (await once(outgoing, 'response')) as [http.IncomingMessage]
  // A cut connection also emits an error here if not all bytes sent before were read.
  outgoing.on('error', () => {})
  const names: string[] = []
  let bytes = 0
  let tail = ''
  let isCut = false
  try {
    for await (const chunk of incoming) {
      if (bytes === 0) await pause?.()
      bytes += (chunk as Buffer).length
      const text = tail + (chunk as Buffer).toString('latin1')
      let end = 0
      for (const found of text.matchAll(NAME)) {
        names.push(found[1]!)
        end = found.index + found[0].length
      }
      tail = text.slice(Math.max(end, text.length - 3_000))
    }
  } catch {
    isCut = true
  }
  const found = TAIL.exec(tail)
  return { status: incoming.statusCode!, bytes, names, nextAfter: found?.[1] ?? null, isCut: isCut || !found }
}

const nameOf = (n: number) => `c-${String(n).padStart(4, '0')}`
const all = Array.from({ length: CONTAINERS }, (_, n) => nameOf(n + 1))

before(async () => {
  database = await createTestDatabase()
  await database.adminSql`
    insert into workload_container
    select 'primary', 'shop', 'Deployment', 'web', 'c-' || lpad(n::text, 4, '0'), 'sha256:' || md5(n::text) || md5(n::text), 'regular', 'r', '{}',
           '{}', null, 'running', null, null, now() at time zone 'utc', now() at time zone 'utc' from generate_series(1, ${CONTAINERS}::int) n`
  // All images share one long text, which makes the insert short and the page long.
  await database.adminSql`
    insert into image_attestation
    select 'sha256:' || md5(n::text) || md5(n::text), 'r', 'verified', null, null, null, null, '[]', '[]', s.list, '[]', '[]', '[]', '', now(), now()
    from generate_series(1, ${CONTAINERS}::int) n,
         (select '[' || string_agg('{"format":"f","verified":true,"san":"' || repeat('s', ${ENTRY_BYTES}::int) || '"}', ',') || ']' as list
          from generate_series(1, ${ENTRIES}::int)) s`
  broker = await start()
})

describe('pages of many megabytes', { timeout: 900_000 }, () => {
  test('several readers at once: each page is whole, and memory stays bounded', async (t) => {
    const reads = await Promise.all(Array.from({ length: CLIENTS }, () => readPage(broker)))
    for (const { status, bytes, names, isCut, nextAfter } of reads) {
      assert.deepEqual([status, isCut, nextAfter !== null], [200, false, true])
      assert.ok(bytes > LIMIT * ENTRIES * ENTRY_BYTES)
      assert.deepEqual(names, all.slice(0, LIMIT))
    }
    const { peak } = residentMb(broker.pid)!
    t.diagnostic(`resident at most ${Math.round(peak)} MiB of ${CEILING_MB}`)
    assert.ok(peak < CEILING_MB, `${peak} MiB were resident, ${CEILING_MB} are allowed`)
    await until(
      'the whole read budget is free',
      async () => (await metric(broker, 'broker_read_budget_kib_available')) === BUDGET_MB * 1_024,
    )
  })

  test('pages read over two replicas and a restart have each container once', async () => {
    const other = await start()
    const first = await readPage(broker)
    const second = await readPage(other, `&after=${first.nextAfter}`)
    await broker.stop()
    // A restarted broker knows as little about the first pages as the other replica.
    broker = onlyFull ? other : await start()
    const third = await readPage(broker, `&after=${second.nextAfter}`)
    assert.deepEqual([third.nextAfter, third.isCut], [null, false])
    assert.deepEqual([...first.names, ...second.names, ...third.names], all)
    if (broker !== other) await other.stop()
  })

  test('a page whose results can no longer be read is cut, and its budget is released', async () => {
    const page = await readPage(broker, '', () => database.adminSql`alter table image_attestation rename to hidden`)
    await database.adminSql`alter table hidden rename to image_attestation`
    assert.deepEqual([page.status, page.isCut], [200, true])
    assert.ok(page.names.length < LIMIT)
    await until(
      'the whole read budget is free',
      async () => (await metric(broker, 'broker_read_budget_kib_available')) === BUDGET_MB * 1_024,
    )
    assert.equal((await readPage(broker)).isCut, false)
  })

  test('when a reader disconnects within a page, its budget is released', async () => {
    const outgoing = http.get(`${broker.url}/attestations/running?limit=${LIMIT}`, { agent: false })
    const [incoming] = (await once(outgoing, 'response')) as [http.IncomingMessage]
    await once(incoming, 'data')
    outgoing.destroy()
    await until(
      'the whole read budget is free',
      async () => (await metric(broker, 'broker_read_budget_kib_available')) === BUDGET_MB * 1_024,
    )
    assert.equal((await get(`${broker.url}/attestations/running?limit=1`)).status, 200)
  })
})
