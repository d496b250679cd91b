/** Readers on a real socket that read slowly or not at all: other readers are not affected. */
import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createApp } from '../../lib/app/app.ts'
import { access } from '../../lib/http/access.ts'
import { sendPieces } from '../../lib/http/response/respond.ts'
import { route } from '../../lib/http/route.ts'
import { listen } from '../../lib/http/server/listen.ts'
import type { Cut, ReaderLimits } from '../../lib/http/server/slow-readers.ts'
import { startApp } from '../support/app.ts'
import { get } from '../support/broker.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { collectAll } from '../support/heap.ts'
import { piecesFrom } from '../support/pieces.ts'
import { whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const ROWS = depth(12_000, 20_000)
const EXECUTABLES = depth(2_000, 3_000)
const SHORT_LISTS = depth(24, 40)
const SLOW = depth(2, 6)
/** Pause of the fast reader after a list. */
const PAUSE_MS = depth(100, 0)
const MB = 1024 * 1024
const IMAGE = `sha256:${'a'.repeat(64)}`
/** More than the size of the longest list, and much less than the charge for making it. */
const LIST_KIB = 16_000
/** Limits that no reader reaches. */
const PATIENT: Partial<ReaderLimits> = { graceMs: 600_000, sweepMs: 20 }
const HASTY: Partial<ReaderLimits> = { leastBytesPerSecond: 32 * 1024, graceMs: 400, sweepMs: 20 }

const app = await startApp()
const { budget } = app.deps
const heldKib = () => budget.totalKib - budget.availableKib

let go = () => {}
const stalled = new Promise<void>((resolve) => {
  go = resolve
})
const stalling = route().get('/stalling', access('open'), (c) =>
  sendPieces(
    c,
    piecesFrom(
      (async function* () {
        yield '['
        await stalled
        yield ']'
      })(),
    ),
  ),
)

before(async () => {
  await app.sql`
    insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port,
                         decision, time_stamp, peer_name)
    select gen_random_uuid()::text, 'busy', 'shop', '10.1.0.1', '0', 'TCP', 'EGRESS', '10.2.' || n / 65536 || '.' || n, '443', 'ALLOW',
           timestamp '2026-01-01' + n * interval '1 second', repeat('x', 100)
    from generate_series(1, ${ROWS}::int) n`
  await app.sql`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash,
                                    path_complete, source, origin, first_seen, last_seen)
    select 'primary', 'shop', 'Deployment', 'busy', 'app', ${IMAGE}, 'exec', p.path, sha256(convert_to(p.path, 'UTF8')), true, 'ebpf', 'image', now(), now()
    from (select '/' || n || repeat('x', 3000) as path from generate_series(1, ${EXECUTABLES}::int) n) p`
})

const servers: Server[] = []
after(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
})

/** The app behind a socket, with these limits of readers. */
async function serve(limits: Partial<ReaderLimits>) {
  const cuts: Cut[] = []
  const fetch = createApp(app.deps, [stalling]).fetch
  const both: typeof fetch = (request, ...rest) =>
    (new URL(request.url).pathname === '/stalling' ? fetch : app.app.fetch)(request, ...rest)
  const { server } = await listen(both, [{ host: '127.0.0.1', port: 0 }], {
    readers: limits,
    onCut: (cut) => cuts.push(cut),
  })
  servers.push(server)
  const { port } = server.address() as AddressInfo
  /** Sends all requests at once and reads nothing. */
  const ask = (...paths: string[]) => {
    const socket = net.connect({ host: '127.0.0.1', port }).pause()
    const state = { socket, isClosed: false, received: 0 }
    socket.on('data', (bytes) => {
      state.received += bytes.length
    })
    socket.pause()
    socket.on('error', () => {})
    socket.on('close', () => {
      state.isClosed = true
    })
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
    return state
  }
  return { url: `http://127.0.0.1:${port}`, ask, cuts }
}

const LIST = `/pod/traffic?limit=${ROWS}`
const allIsFree = () => until('the whole budget is free', () => heldKib() === 0)

test('while six readers of the longest list read nothing, other readers still get the list', {
  skip: onlyFull,
}, async () => {
  const { url, ask, cuts } = await serve(PATIENT)
  const slow: ReturnType<typeof ask>[] = []
  for (let i = 1; i <= SLOW; i++) {
    slow.push(ask(LIST))
    // The charge for making the list has shrunk to the size of the list.
    await until('the list is there', () => heldKib() > i * 1_000 && heldKib() < i * LIST_KIB)
  }
  for (let i = 0; i < 3; i++) {
    const answer = await get(url + LIST)
    assert.deepEqual([answer.status, answer.json?.length], [200, ROWS], answer.text.slice(0, 200))
  }
  assert.deepEqual(cuts, [])
  for (const { socket } of slow) socket.destroy()
  await allIsFree()
})

test('the sent part of a list is freed in the budget and in memory', { skip: onlyFull }, async () => {
  const { url, ask } = await serve(PATIENT)
  await collectAll()
  const before = process.memoryUsage().arrayBuffers
  const reader = ask(LIST)
  await until('the list is there', () => heldKib() > 1_000 && heldKib() < LIST_KIB)
  const first = heldKib()
  // The reader pauses until half of the charge is free.
  await until('half of it has been freed', () => {
    if (reader.received < first * 512) reader.socket.once('data', () => reader.socket.pause())
    reader.socket.resume()
    return heldKib() < first / 2
  })
  reader.socket.pause()
  const held = heldKib()
  assert.ok(held > 0, 'some of it has not left')
  await until('memory is given back as well', async () => {
    // Another request frees the references that the previous one left.
    await get(`${url}/pod/traffic?limit=1`)
    await collectAll()
    return process.memoryUsage().arrayBuffers - before < held * 1024 + 2 * MB
  })
  reader.socket.destroy()
  await allIsFree()
})

for (const [what, paths] of [
  ['a list', [LIST]],
  ['all flows of a pod', ['/pod/traffic/busy']],
  ['the executables of a workload', ['/workloads/shop/Deployment/busy/runtime?limit=5000']],
  ['many short lists at once', Array.from({ length: SHORT_LISTS }, () => '/pod/traffic?limit=500')],
] as const) {
  test(`a slow reader of ${what} is cut, and a fast reader is not`, async () => {
    const { url, ask, cuts } = await serve(HASTY)
    const slow = Array.from({ length: SLOW }, () => ask(...paths))
    const quick = async () => {
      for (;;) {
        const { status, json } = await get(url + LIST)
        if (status === 200) assert.equal(json.length, ROWS)
        if (cuts.length >= SLOW) return
        await delay(PAUSE_MS)
      }
    }
    await Promise.all([quick(), until('the slow readers are cut', () => cuts.length >= SLOW)])
    for (const { reason, waitingBytes } of cuts) {
      assert.equal(reason, 'rate')
      assert.ok(waitingBytes > 0)
    }
    await allIsFree()
    for (const { socket } of slow) socket.resume()
    await until('their connections have ended', () => slow.every(({ isClosed }) => isClosed))
    assert.equal(cuts.length, SLOW)
  })
}

test('an answer that has not left by its deadline is cut, whatever its rate', async () => {
  const { ask, cuts } = await serve({ ...PATIENT, answerMs: 300 })
  const reader = ask(LIST)
  await until('it is cut', () => cuts.length === 1)
  assert.equal(cuts[0]!.reason, 'deadline')
  reader.socket.resume()
  await until('its connection has ended', () => reader.isClosed)
  await allIsFree()
})

test('a reader that waits for the rest of its answer, or is idle, is not cut', async () => {
  const { ask, cuts } = await serve(HASTY)
  const waiting = ask('/stalling')
  waiting.socket.resume()
  const idle = ask('/pod/traffic?limit=1')
  idle.socket.resume()
  await until('both have been answered', () => waiting.received > 0 && idle.received > 0)
  // Two readers that read nothing are cut one after the other: by then the time limit has passed.
  for (let i = 1; i <= 2; i++) {
    ask(LIST)
    await until('that reader is cut', () => cuts.length === i)
  }
  assert.deepEqual([waiting.isClosed, idle.isClosed], [false, false])
  go()
  const answered = waiting.received
  await until('the rest has come', () => waiting.received > answered)
  assert.equal(cuts.length, 2)
  idle.socket.destroy()
  waiting.socket.destroy()
  await allIsFree()
})

test('only the slow reader is cut: six lists are served while two clients request policies again and again', {
  skip: onlyFull,
}, async () => {
  await app.sql`
    insert into workload_container
    select 'primary', 'shop', 'Deployment', 'web-' || n, 'app', 'sha256:' || md5(n::text) || md5(n::text), 'regular', 'registry.test/app-' || n || ':1',
           '{}', '{}', null, 'running', null, null, now() at time zone 'utc', now() at time zone 'utc'
    from generate_series(1, 300) n`
  await app.sql`
    insert into image_attestation
    select 'sha256:' || md5(n::text) || md5(n::text), 'r', 'verified', null, null, null, null, s.list, '[]', s.list, '[]', '[]', '[]', '', now(), now()
    from generate_series(1, 300) n,
         lateral (select json_build_array(json_build_object('format', 'f', 'verified', true, 'issuer', 'https://issuer.test', 'san', n::text))::text as list) s`
  // Long enough for any reader that reads, even on a busy machine.
  const { url, ask, cuts } = await serve({ ...HASTY, graceMs: 6_000 })
  const slow = ask(LIST)
  await until('its list is there', () => heldKib() > 1_000 && heldKib() < LIST_KIB)
  const lists = [
    LIST,
    '/pod/traffic/busy',
    '/workloads/shop/Deployment/busy/runtime?limit=5000',
    '/images?limit=500',
    '/vulnerabilities?limit=500',
    `/images/${IMAGE}/runtime?limit=5000`,
  ]
  const policies: number[] = []
  let isOver = false
  const loop = async () => {
    while (!isOver) policies.push((await get(`${url}/attestations/policy`)).status)
  }
  let loops: Promise<void>[] = []
  await whileLocked(app.sql, 'image_attestation', async () => {
    loops = [loop(), loop()]
    await until('both wait for the database', async () => {
      const [row] = await app.sql<{ count: number }[]>`
        select count(*)::integer as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return row!.count >= 2
    })
    const answers = await Promise.all(lists.map((path) => get(url + path)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      lists.map(() => 200),
    )
    assert.deepEqual(policies, [], 'the policies are not there yet')
  })
  for (let i = 0; i < 3; i++)
    for (const { status } of await Promise.all(lists.map((path) => get(url + path)))) assert.equal(status, 200)
  await until('the slow reader is cut', () => cuts.length > 0)
  await until('both clients have their policies', () => policies.length >= 2)
  isOver = true
  await Promise.all(loops)
  assert.deepEqual(
    policies.filter((status) => status !== 200),
    [],
  )
  assert.equal(cuts.length, 1)
  slow.socket.destroy()
  await allIsFree()
})
