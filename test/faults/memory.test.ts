import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { after, before, beforeEach, describe, type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  type Broker,
  flow,
  get,
  metric,
  post,
  type Reply,
  request,
  residentMb,
  startBroker,
} from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'

const CLIENTS = 64
/** Each list is 70 MB: with 64 clients the peak of memory is the same, and the test takes six times as long. */
const POD_CLIENTS = 24
const HEAP_MB = 160
const BUDGET_MB = 100
const INBOX_MB = 16
/**
 * The limit of resident memory: the heap, the read budget, bodies as received, and the program with its libraries and
 * the loader.
 */
const CEILING_MB = HEAP_MB + BUDGET_MB + INBOX_MB + 60
const MAX_LIST_ROWS = 20_000
const POD_ROWS = 120_000
const BODY_BYTES = 2 * 1024 * 1024
const MAX_BODY_FLOWS = 3_000
const SHED = /read memory budget.*needs \d+ KiB of a \d+ KiB budget/

let database: TestDatabase
let broker: Broker

/** The outcome of reading a list: the count of its rows if it is whole, or the text of a refusal. Rows are not kept. */
interface Outcome {
  status: number
  rows: number
  isWhole: boolean
  text: string
}

const ROW = Buffer.from('{"uuid":"')

/** Reads a list to its end; waits for `pause` after the first bytes. */
async function readList(url: string, pause?: Promise<void>): Promise<Outcome> {
  const outgoing = http.get(url, { agent: false })
  const [incoming] = (await once(outgoing, 'response')) as [http.IncomingMessage]
  incoming.pause()
  await pause
  const outcome: Outcome = { status: incoming.statusCode!, rows: 0, isWhole: false, text: '' }
  let tail = Buffer.alloc(0)
  let first = true
  for await (const chunk of incoming) {
    const bytes = Buffer.concat([tail, chunk as Buffer])
    if (first && outcome.status !== 200) outcome.text += chunk
    if (first) assert.equal(outcome.status === 200, bytes[0] === 0x5b)
    first = false
    let at = bytes.indexOf(ROW)
    for (; at >= 0; at = bytes.indexOf(ROW, at + 1)) outcome.rows++
    // The tail is shorter than the searched text, so that nothing is counted twice.
    tail = bytes.subarray(Math.max(0, bytes.length - ROW.length + 1))
  }
  outcome.isWhole = tail.subarray(-2).toString() === '}]'
  return outcome
}

function checkList({ status, rows, isWhole, text }: Outcome, expected: number): void {
  if (status === 200) {
    assert.ok(isWhole)
    assert.equal(rows, expected)
  } else {
    assert.equal(status, 503)
    assert.match(text, SHED)
  }
}

/** Null if the slow reader was cut: on a busy machine it may pause for too long. */
const orCut = (list: Promise<Outcome>): Promise<Outcome | null> =>
  list.catch(async (error: NodeJS.ErrnoException) => {
    assert.equal(error.code, 'ECONNRESET')
    assert.ok((await metric(broker, 'broker_slow_readers_cut_total')) > 0)
    return null
  })

/** As many valid, new flows as fit in one body; `round` makes them differ from those of other calls. */
function largestBody(round: number): string {
  const flows: string[] = []
  let length = 2
  for (let i = 0; flows.length < MAX_BODY_FLOWS; i++) {
    const text = JSON.stringify({ ...flow(round * MAX_BODY_FLOWS + i, 'poster'), pod_ip: '10.9.9.9' })
    if (length + text.length + 1 > BODY_BYTES) break
    flows.push(text)
    length += text.length + 1
  }
  // Trailing blanks count as part of the body.
  return `[${flows.join(',')}]`.padEnd(BODY_BYTES)
}

function checkPost({ status, headers, text }: Reply): void {
  if (status === 200) return
  assert.equal(status, 503, text)
  assert.ok(headers['retry-after'])
}

/** The process runs, was never above the ceiling, and frees its memory when it is idle. */
async function checkMemory(t: TestContext): Promise<void> {
  assert.equal(broker.hasExited, false, broker.stderr)
  const { peak } = residentMb(broker.pid) ?? { peak: 0 }
  t.diagnostic(`resident at most ${Math.round(peak)} MiB of ${CEILING_MB}`)
  assert.ok(peak < CEILING_MB, `${peak} MiB were resident, ${CEILING_MB} are allowed`)
  await until(
    'the whole read budget is free',
    async () => (await metric(broker, 'broker_read_budget_kib_available')) === BUDGET_MB * 1024,
  )
  // V8 collects garbage only with some traffic, and after some time.
  await until(
    'what lists and bodies took is given back',
    async () => {
      for (let i = 0; i < 50; i++) await get(`${broker.url}/pod/name/nobody`)
      const inUse =
        (await metric(broker, 'nodejs_heap_size_used_bytes')) + (await metric(broker, 'nodejs_external_memory_bytes'))
      return inUse < 80 * 1024 * 1024
    },
    120_000,
  )
  const errors = broker.log.filter(({ level }) => level === 'error' || level === 'fatal')
  assert.deepEqual(errors, [])
  assert.equal((await broker.stop()).code, 0)
}

const insertBusy = (rows: number) => database.adminSql`
  insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port,
                       decision, time_stamp, peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name)
  select gen_random_uuid()::text, 'busy', 'shop', '10.1.0.1', '0', 'TCP', 'EGRESS', '10.2.' || n / 65536 || '.' || n, '443',
         'ALLOW', timestamp '2026-01-01' + n * interval '1 second', 'pod', 'shop', 'payments-7d4b9c6f5-' || n, gen_random_uuid()::text, 'Deployment', 'payments'
  from generate_series(1, ${rows}::int) n`

describe(`with a heap of ${HEAP_MB} MiB and a read budget of ${BUDGET_MB} MiB`, {
  timeout: 1_800_000,
  skip: onlyFull,
}, () => {
  before(async () => {
    database = await createTestDatabase()
    await insertBusy(POD_ROWS)
  })

  beforeEach(async () => {
    broker = await startBroker({
      databaseUrl: database.url,
      nodeArgs: [`--max-old-space-size=${HEAP_MB}`],
      env: { BROKER_READ_MEMORY_BUDGET_MB: String(BUDGET_MB), BROKER_READ_ACQUIRE_WAIT_MS: '2000', JOBS: 'external' },
    })
  })

  after(() => database.drop())

  test('64 clients request the longest lists at once, some of them slow: each list is whole or refused, or its slow reader is cut', async (t) => {
    let resume = () => {}
    const paused = new Promise<void>((resolve) => {
      resume = resolve
    })
    t.after(resume)
    const lists = Array.from({ length: CLIENTS }, (_, i) => {
      // Half of the clients request the same list, which is read only once.
      const limit = i % 2 === 0 ? MAX_LIST_ROWS : MAX_LIST_ROWS - i
      const url = `${broker.url}/pod/traffic?limit=${limit}`
      const isSlow = i % 8 === 7
      return { limit, isSlow, done: isSlow ? orCut(readList(url, paused)) : readList(url) }
    })
    const quick = await Promise.all(
      lists.filter(({ isSlow }) => !isSlow).map(async ({ limit, done }) => ({ limit, outcome: await done })),
    )
    resume()
    const slow = await Promise.all(
      lists.filter(({ isSlow }) => isSlow).map(async ({ limit, done }) => ({ limit, outcome: await done })),
    )
    for (const { limit, outcome } of [...quick, ...slow]) if (outcome) checkList(outcome, limit)
    const statuses = [...quick, ...slow].map(({ outcome }) => outcome?.status ?? 200)
    assert.ok(statuses.includes(200) && statuses.includes(503), `all were ${statuses[0]}`)
    await checkMemory(t)
  })

  test(`${POD_CLIENTS} clients request all flows of a pod at once, one of them slow: each list is whole or refused, or the slow reader is cut`, async (t) => {
    const url = `${broker.url}/pod/traffic/busy`
    let resume = () => {}
    const paused = new Promise<void>((resolve) => {
      resume = resolve
    })
    t.after(resume)
    const slow = orCut(readList(url, paused))
    const quick = Array.from({ length: POD_CLIENTS - 1 }, () => readList(url))
    // The slow reader may be cut, since it reads nothing until the others have finished.
    await until('all are answered', () => [...broker.statuses.values()].reduce((sum, n) => sum + n, 0) >= POD_CLIENTS)
    resume()
    const all = await Promise.all([slow, ...quick])
    for (const outcome of all) if (outcome) checkList(outcome, POD_ROWS)
    assert.equal(all[0]?.status ?? 200, 200)
    await checkMemory(t)
  })

  test('clients that request lists and disconnect before the answers arrive do not use more memory', async (t) => {
    for (let round = 0; round < 6; round++) {
      const asked = Array.from({ length: CLIENTS }, (_, i) => {
        const path = i % 2 === 0 ? `/pod/traffic?limit=${MAX_LIST_ROWS - i}` : '/pod/traffic/busy'
        const outgoing = http.get(`${broker.url}${path}`, { agent: false })
        outgoing.on('error', () => {})
        outgoing.on('response', (incoming) => incoming.destroy())
        return outgoing
      })
      // Some lists are being read by now.
      await until(
        'a list is being read',
        async () => (await metric(broker, 'broker_read_budget_kib_available')) < BUDGET_MB * 1024,
      )
      for (const outgoing of asked) outgoing.destroy()
    }
    await checkMemory(t)
  })

  test('clients that request many lists at once, read nothing and disconnect do not use more memory', async (t) => {
    const question = 'GET /pod/traffic?limit=3000 HTTP/1.1\r\nHost: x\r\n\r\n'
    for (let round = 0; round < 3; round++) {
      const sockets = Array.from({ length: CLIENTS / 8 }, () => {
        const socket = net.connect({ host: '127.0.0.1', port: broker.port }).pause()
        socket.on('error', () => {})
        socket.write(question.repeat(8))
        return socket
      })
      // The first answer of each connection is in the buffers of its socket; the others wait behind it.
      await until('no other list fits', async () => (await metric(broker, 'broker_read_budget_kib_available')) < 7_500)
      for (const socket of sockets) socket.destroy()
      await until(
        'the whole read budget is free',
        async () => (await metric(broker, 'broker_read_budget_kib_available')) === BUDGET_MB * 1024,
      )
    }
    await checkMemory(t)
  })

  test('64 bodies of flows of the largest size at once are stored or refused', async (t) => {
    const bodies = Array.from({ length: CLIENTS }, (_, i) => largestBody(i))
    const answers = await Promise.all(
      bodies.map((body) => request(`${broker.url}/pod/traffic/batch`, { method: 'POST', body })),
    )
    for (const answer of answers) checkPost(answer)
    const stored = answers.reduce((sum, { status, json }) => sum + (status === 200 ? json : 0), 0)
    assert.ok(stored > 0)
    const [row] = await database.adminSql`select count(*)::int as n from traffic where pod_name = 'poster'`
    assert.ok(row!.n >= stored)
    await checkMemory(t)
  })

  test('64 bodies at once with as many small values as fit, compressed or not, are refused, and ordinary posts are stored', async (t) => {
    const filled = (unit: string) => `[${`${unit},`.repeat((BODY_BYTES - unit.length - 2) / (unit.length + 1))}${unit}]`
    // The last two are parsed before they are refused.
    const nested = (unit: (i: number) => string) => `[[${Array.from({ length: 49_000 }, (_, i) => unit(i)).join(',')}]]`
    const texts = [
      filled('0'),
      filled('{}'),
      filled('{"uuid":"z"}'),
      '['.repeat(BODY_BYTES),
      nested((i) => `{"k${i}":1}`),
      nested((i) => `{"${i}":[]}`),
    ]
    for (const isPacked of [false, true]) {
      const bodies = texts.map((text) => (isPacked ? gzipSync(text) : Buffer.from(text)))
      const headers: Record<string, string> = isPacked ? { 'content-encoding': 'gzip' } : {}
      const answers = Array.from({ length: CLIENTS }, (_, i) =>
        request(`${broker.url}/pod/traffic/batch`, { method: 'POST', body: bodies[i % bodies.length]!, headers }),
      )
      const ordinary = await post(`${broker.url}/pod/traffic/batch`, [
        flow(3 * CLIENTS * MAX_BODY_FLOWS + Number(isPacked), 'ordinary'),
      ])
      assert.deepEqual([ordinary.status, ordinary.json], [200, 1])
      for (const { status, text } of await Promise.all(answers))
        assert.ok([400, 413, 503].includes(status), `${status} ${text}`)
    }
    await checkMemory(t)
  })

  test('long lists, all flows of a pod and the largest bodies at once stay within the memory limit', async (t) => {
    const bodies = Array.from({ length: CLIENTS / 4 }, (_, i) => largestBody(CLIENTS + i))
    const lists = Array.from({ length: CLIENTS / 2 }, () =>
      readList(`${broker.url}/pod/traffic?limit=${MAX_LIST_ROWS}`),
    )
    const streams = Array.from({ length: CLIENTS / 4 }, () => readList(`${broker.url}/pod/traffic/busy`))
    const posts = bodies.map((body) => request(`${broker.url}/pod/traffic/batch`, { method: 'POST', body }))
    for (const outcome of await Promise.all(lists)) checkList(outcome, MAX_LIST_ROWS)
    for (const outcome of await Promise.all(streams)) checkList(outcome, POD_ROWS)
    for (const answer of await Promise.all(posts)) checkPost(answer)
    await checkMemory(t)
  })

  // Bodies that are known to have broken the memory limit.

  /** Pod manifests that fill a body. */
  const manifests = (count: number, letter: string) => {
    const note = letter.repeat(Math.floor((BODY_BYTES - 1_000) / Buffer.byteLength(letter)))
    return Array.from({ length: count }, (_, i) => ({
      pod_name: `large-${i}`,
      pod_ip: `10.4.0.${i}`,
      time_stamp: '2026-01-01T00:00:00',
      started_at: '2025-01-01T00:00:00',
      node_name: 'node-1',
      is_dead: false,
      pod_obj: { metadata: { annotations: { note } } },
    }))
  }

  for (const [what, letter] of [
    ['Latin letters', 'x'],
    ['letters of two bytes in memory', '\u20ac'],
  ] as const) {
    test(`64 manifests of the largest size at once, in ${what}, are stored or refused`, async (t) => {
      const answers = await Promise.all(manifests(CLIENTS, letter).map((one) => post(`${broker.url}/pod/spec`, one)))
      for (const answer of answers) checkPost(answer)
      assert.ok(answers.some(({ status }) => status === 200))
      await checkMemory(t)
    })
  }

  test('rows that a long peer uid makes as wide as possible stay within the memory limit', async (t) => {
    t.after(() => database.adminSql`delete from traffic where time_stamp > '2035-01-01'`)
    const peer = { ...manifests(1, 'x')[0]!, pod_obj: { metadata: { uid: 'u'.repeat(1_000_000) } } }
    checkPost(await post(`${broker.url}/pod/spec`, peer))
    const flows = Array.from({ length: 300 }, (_, i) => ({
      ...flow(CLIENTS * 2 * MAX_BODY_FLOWS + i),
      traffic_in_out_ip: peer.pod_ip,
      pod_ip: `10.5.0.${i}`,
    }))
    const sent = flows.map((one) => ({ ...one, time_stamp: '2036-01-01T00:00:00' }))
    checkPost(await post(`${broker.url}/pod/traffic/batch`, sent))
    await readList(`${broker.url}/pod/traffic`)
    await checkMemory(t)
  })
})

describe('with a heap of 200 MiB and a memory limit of 256 MiB', { skip: onlyFull, timeout: 1_800_000 }, () => {
  // The limit gives a read budget of 76 MiB. Three of the longest lists cannot be made at the same time, but about
  // eight finished lists fit beside each other.
  const READERS = 12

  before(async () => {
    database = await createTestDatabase()
    await insertBusy(MAX_LIST_ROWS)
    broker = await startBroker({
      databaseUrl: database.url,
      nodeArgs: ['--max-old-space-size=200'],
      env: { BROKER_MEMORY_LIMIT_MB: '256', JOBS: 'external' },
    })
  })

  after(() => database.drop())

  test('slow readers of the longest lists are cut and counted, small lists are served meanwhile, and memory stays bounded', async (t) => {
    const budgetKib = await metric(broker, 'broker_read_budget_kib_total')
    const sockets = Array.from({ length: READERS }, () => {
      const socket = net.connect({ host: '127.0.0.1', port: broker.port }).pause()
      socket.on('error', () => {})
      socket.write(`GET /pod/traffic?limit=${MAX_LIST_ROWS} HTTP/1.1\r\nHost: x\r\n\r\n`)
      return socket
    })
    t.after(() => {
      for (const socket of sockets) socket.destroy()
    })
    // Each reader takes at most 2400 bytes a second.
    const sip = setInterval(() => {
      for (const socket of sockets) socket.read(240)
    }, 100)
    t.after(() => clearInterval(sip))
    await until(
      'the slow readers have their lists or were shed',
      () => [...broker.statuses.values()].reduce((a, b) => a + b, 0) >= READERS,
    )
    // Small lists are served meanwhile.
    for (let i = 0; i < 50; i++) assert.equal((await get(`${broker.url}/pod/list/node-${i}`)).status, 200)
    await until('they are cut', async () => (await metric(broker, 'broker_slow_readers_cut_total')) > 0, 120_000)
    await until(
      'the whole read budget is free',
      async () => (await metric(broker, 'broker_read_budget_kib_available')) === budgetKib,
      120_000,
    )
    checkList(await readList(`${broker.url}/pod/traffic?limit=${MAX_LIST_ROWS}`), MAX_LIST_ROWS)
    const { peak } = residentMb(broker.pid) ?? { peak: 0 }
    t.diagnostic(`resident at most ${Math.round(peak)} MiB`)
    assert.ok(peak < 300, `${peak} MiB were resident`)
    assert.equal((await broker.stop()).code, 0)
  })
})
