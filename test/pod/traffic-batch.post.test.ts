import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import test, { after } from 'node:test'
import { listen } from '../../lib/http/server/listen.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import { MAX_BATCH_FLOWS } from '../../lib/traffic/index.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost, servicePost } from '../support/records.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  refusedBodies,
  startReplica,
  whileRefused,
} from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS)

let made = 0

/** A flow with a unique uuid and peer; a key given as undefined is left out. */
function flow(fields: Record<string, unknown> = {}) {
  made++
  return {
    uuid: `flow-${made}`,
    pod_name: 'web-0',
    pod_namespace: 'shop',
    pod_ip: '10.1.0.1',
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: `10.2.${made >> 8}.${made & 255}`,
    traffic_in_out_port: '443',
    decision: 'ALLOW',
    time_stamp: '2024-05-01T10:00:00',
    ...fields,
  }
}
type Flow = ReturnType<typeof flow>
const flows = (count: number, fields: Record<string, unknown> = {}) => Array.from({ length: count }, () => flow(fields))
/** The same flow under another uuid. */
const again = (one: Flow, fields: Record<string, unknown> = {}) => {
  made++
  return { ...one, uuid: `again-${made}`, ...fields }
}

async function post(body: unknown): Promise<number> {
  const answer = await app.post('/pod/traffic/batch', body)
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.text, /^\d+$/)
  return answer.json
}
const rows = async () => Number((await app.sql`select count(*) from traffic`)[0]!.count)
/** Posts the body and asserts that exactly the flows in `stored` were stored. */
async function assertStored(body: Flow[], stored: Flow[]): Promise<void> {
  const before = await rows()
  assert.equal(await post(body), stored.length)
  assert.equal(await rows(), before + stored.length)
  const uuids = new Set((await app.sql`select uuid from traffic`).map(({ uuid }) => uuid))
  for (const one of body) if (stored.includes(one)) assert.ok(uuids.has(one.uuid), `not stored: ${JSON.stringify(one)}`)
}

test('POST /pod/traffic/batch 200: the answer is the number of inserted rows', async () => {
  const answer = await app.post('/pod/traffic/batch', [])
  assert.deepEqual([answer.status, answer.text, answer.headers.get('content-type')], [200, '0', 'application/json'])
  const three = flows(3)
  await assertStored(three, three)
  await assertStored(three, [])
  const [fresh] = flows(1) as [Flow]
  await assertStored([again(three[0]!), fresh, again(three[2]!)], [fresh])
})

test('POST /pod/traffic/batch 200: every column of every flow is stored in its own row', async () => {
  const sent = flows(50).map((one, i) => ({
    ...one,
    ...(i % 3 ? {} : { pod_name: null, drop_cause: 'no-policy', syn_retries: i }),
    time_stamp: `2040-01-01T00:00:${String(i).padStart(2, '0')}.000001`,
  }))
  assert.equal(await post(sent), 50)
  const { json } = await app.get('/pod/traffic?limit=50')
  const stored = new Map(json.map((row: Flow) => [row.uuid, row]))
  for (const one of sent) {
    const row = stored.get(one.uuid) as Record<string, unknown>
    for (const [key, value] of Object.entries(one)) assert.equal(row[key], value, key)
    if (!('drop_cause' in one)) assert.deepEqual([row.drop_cause, row.syn_retries], [null, null])
  }
})

test('POST /pod/traffic/batch 200: a retried body inserts nothing, whether or not its flows are still in memory', async () => {
  const body = flows(100).map((one, i) => ({ ...one, ip_protocol: i % 10 ? 'TCP' : 'UDP' }))
  assert.equal(await post(body), 100)
  assert.equal(await post(body), 0)
  app.deps.seen.clear()
  assert.equal(await post(body), 0)
  app.deps.seen.clear()
  assert.equal(await post(body.map((one) => again(one))), 0)
})

test('POST /pod/traffic/batch 200: a body with a flow known in memory, one known in the table and a new one inserts the new one only', async () => {
  const [inMemory, inTable, fresh] = flows(3) as [Flow, Flow, Flow]
  await post([inTable])
  app.deps.seen.clear()
  await post([inMemory])
  await app.sql`delete from traffic where uuid = ${inMemory.uuid}`
  await assertStored([again(inMemory), again(inTable), fresh], [fresh])
  app.deps.seen.clear()
  const back = again(inMemory)
  await assertStored([back, again(inTable), again(fresh)], [back])
})

test('POST /pod/traffic/batch 200: inserted and duplicate flows are counted', async () => {
  const counts = async () => {
    const { values } = await app.deps.metrics.flows.get()
    const of = (outcome: string) => values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0
    return [of('inserted'), of('duplicate')] as const
  }
  const [inserted, duplicate] = await counts()
  const three = flows(3)
  await post([...three, again(three[0]!)])
  await post([again(three[0]!), ...flows(1)])
  assert.deepEqual(await counts(), [inserted + 4, duplicate + 2])
})

// ---- Repeats within one body ----------------------------------------------------------------------------------------

test('POST /pod/traffic/batch 200: a flow and its repeats in one body are stored once, as the first', async () => {
  const one = flow()
  await assertStored([one, again(one, { time_stamp: '2031-01-01T00:00:00', pod_name: 'x' }), again(one)], [one])
  const spelled = flow({ pod_ip: 'fd00::1', traffic_in_out_ip: '::ffff:10.3.0.1' })
  await assertStored([spelled, again(spelled, { pod_ip: 'FD00:0::1', traffic_in_out_ip: '10.3.0.1' })], [spelled])
})

const MEMBERS = [
  'pod_ip',
  'pod_port',
  'ip_protocol',
  'traffic_type',
  'traffic_in_out_ip',
  'traffic_in_out_port',
  'decision',
]

for (const member of MEMBERS) {
  test(`POST /pod/traffic/batch 200: flows without ${member} are duplicates of each other within one body`, async () => {
    const one = flow({ [member]: null, pod_name: null })
    await assertStored([one, again(one), again(one, { [member]: undefined })], [one])
    const [second, other] = [again(one), again(one, { [member]: '9' })]
    // The protocol is not one of the six members, so a flow without it is still compared with the table.
    const isWhole = member === 'ip_protocol'
    await assertStored([second, other, again(one), again(other)], isWhole ? [] : [second, other])
  })
}

test('POST /pod/traffic/batch 200: flows that are null but for one member are different flows', async () => {
  const nothing = Object.fromEntries(MEMBERS.map((member) => [member, null]))
  const all = [flow(nothing), ...MEMBERS.map((member) => flow({ ...nothing, [member]: '1' }))]
  await assertStored([...all, ...all.map((one) => again(one))], all)
})

test('POST /pod/traffic/batch 200: UDP flows of one body that share a port are duplicates', async () => {
  const first = flow({ ip_protocol: 'UDP', pod_port: '1', traffic_in_out_port: '1' })
  const otherPodPort = again(first, { pod_port: '2' })
  const otherPeerPort = again(first, { traffic_in_out_port: '2' })
  const neither = again(first, { pod_port: '2', traffic_in_out_port: '2' })
  await assertStored([first, otherPodPort, otherPeerPort, neither], [first, neither])
})

test('POST /pod/traffic/batch 200: a flow that was not stored does not make a later one a duplicate', async () => {
  const stored = flow({ ip_protocol: 'UDP', pod_port: '1', traffic_in_out_port: '1' })
  await post([stored])
  const ports = (a: string, b: string) => again(stored, { pod_port: a, traffic_in_out_port: b })
  const links = [ports('1', '2'), ports('2', '2'), ports('2', '3'), ports('3', '3'), ports('3', '4')]
  await assertStored(links, [links[1]!, links[3]!])
  const chain = Array.from({ length: 60 }, (_, i) => ports(`c${i >> 1}`, `c${(i + 1) >> 1}`))
  await assertStored(
    chain,
    chain.filter((_, i) => i % 2 === 0),
  )
})

test('POST /pod/traffic/batch 200: a new UDP flow with hundreds of duplicates is stored once', async () => {
  const first = flow({ ip_protocol: 'UDP' })
  await assertStored(
    [first, ...Array.from({ length: 700 }, (_, i) => again(first, { traffic_in_out_port: `${i}` }))],
    [first],
  )
})

test('POST /pod/traffic/batch 200: TCP and UDP flows of one body are compared in their order', async () => {
  const tcp = flow({ traffic_in_out_port: '53' })
  await assertStored([tcp, again(tcp, { ip_protocol: 'UDP', traffic_in_out_port: '54' })], [tcp])
  const udp = flow({ ip_protocol: 'UDP', traffic_in_out_port: '53' })
  const later = again(udp, { ip_protocol: 'TCP', traffic_in_out_port: '54' })
  await assertStored([udp, later, again(udp, { ip_protocol: 'TCP' })], [udp, later])
})

test('POST /pod/traffic/batch 200: the protocol tells flows of one body apart only where a member is null', async () => {
  const tcp = flow()
  await assertStored([tcp, again(tcp, { ip_protocol: 'SCTP' }), again(tcp, { ip_protocol: null })], [tcp])
  const open = flow({ pod_port: null })
  const sctp = again(open, { ip_protocol: 'SCTP' })
  await assertStored([open, sctp, again(open), again(sctp)], [open, sctp])
})

test('POST /pod/traffic/batch 200: a flow refused for its uuid does not change the order in which the rest of the body is stored', async () => {
  const taken = flow()
  await post([taken])
  const [refused] = flows(1, { uuid: taken.uuid, ip_protocol: 'SCTP', pod_port: '1', traffic_in_out_port: null }) as [
    Flow,
  ]
  const waits = again(refused, { ip_protocol: 'UDP' })
  const overtakes = again(refused, { traffic_in_out_port: '0' })
  await assertStored([refused, waits, overtakes], [waits, overtakes])
})

test('POST /pod/traffic/batch 200: the first flow of a uuid in a body is stored, later ones with the same uuid are not', async () => {
  const one = flow()
  const [other, third] = flows(2, { uuid: one.uuid }) as [Flow, Flow]
  assert.equal(await post([one, other, third]), 1)
  const [kept] = await app.sql`select traffic_in_out_ip from traffic where uuid = ${one.uuid}`
  assert.equal(kept!.traffic_in_out_ip, one.traffic_in_out_ip)
  // The two others are not remembered as stored: under new uuids they are new flows.
  const fresh = [again(other), again(third)]
  await assertStored(fresh, fresh)
})

test('POST /pod/traffic/batch 200: flows of two days with the same uuid are two flows, also in one body', async () => {
  const one = flow({ time_stamp: '2026-03-01T23:59:59' })
  const next = flow({ uuid: one.uuid, time_stamp: '2026-03-02T00:00:00' })
  const third = flow({ uuid: one.uuid, time_stamp: '2026-03-02T00:00:01' })
  assert.equal(await post([one, next, third]), 2)
  const rows = await app.sql`
    select traffic_in_out_ip as ip from traffic where uuid = ${one.uuid} order by time_stamp`
  assert.deepEqual(
    rows.map(({ ip }) => ip),
    [one.traffic_in_out_ip, next.traffic_in_out_ip],
  )
  assert.equal(await post([again(one), again(next)]), 0)
})

test('POST /pod/traffic/batch 200: a flow whose uuid is taken does not fail the other flows of its body, nor the next body', async () => {
  const taken = flow()
  await post([taken])
  for (let i = 0; i < 3; i++) {
    const clash = flow({ uuid: taken.uuid })
    const body = [...flows(5), clash, ...flows(5)]
    await assertStored(
      body,
      body.filter((one) => one !== clash),
    )
    const fresh = flows(10)
    await assertStored(fresh, fresh)
  }
})

// ---- Size, order and concurrent posts -------------------------------------------------------------------------------

test('POST /pod/traffic/batch 200: 1000 flows are accepted, and so are as many as fit into a body', async () => {
  assert.equal(await post(flows(1_000)), 1_000)
  const many: object[] = []
  for (let bytes = 2; bytes < MAX_CORE_BODY_BYTES - 400; ) {
    const one = flow()
    bytes += JSON.stringify(one).length + 1
    many.push(one)
  }
  assert.ok(many.length > 5_000)
  assert.equal(await post(many), many.length)
  assert.equal(await post(many), 0)
})

test('POST /pod/traffic/batch 200: the greatest number of elements is accepted, one more is refused with 413', async () => {
  const tiny = (count: number, fields: (i: number) => object) =>
    Array.from({ length: count }, (_, i) => ({
      uuid: `t${made}-${i}`,
      time_stamp: '2024-05-01T10:00:00',
      ...fields(i),
    }))
  assert.equal(await post(tiny(MAX_BATCH_FLOWS, () => ({}))), 1)
  made++
  assert.equal(await post(tiny(MAX_BATCH_FLOWS, (i) => ({ pod_port: String(i) }))), MAX_BATCH_FLOWS)
  made++
  const before = await rows()
  const answer = await app.post(
    '/pod/traffic/batch',
    tiny(MAX_BATCH_FLOWS + 1, (i) => ({ pod_port: String(i) })),
  )
  assert.deepEqual([answer.status, answer.text], [413, `body has more than ${MAX_BATCH_FLOWS} elements`])
  assert.equal(await rows(), before)
})

test('POST /pod/traffic/batch 200: the same body from twenty clients of two processes at once is stored once', async () => {
  const replica = startReplica(app)
  after(() => replica.end())
  const body = flows(100).map((one, i) => ({ ...one, ip_protocol: i % 4 ? 'TCP' : 'UDP' }))
  const before = await rows()
  const copies = Array.from({ length: 20 }, () => body.map((one) => again(one)).sort(() => Math.random() - 0.5))
  await Promise.all(copies.map((copy, i) => (i % 2 ? post(copy) : replica.post('/pod/traffic/batch', copy))))
  assert.equal(await rows(), before + 100)
})

test('POST /pod/traffic/batch 200: concurrent clients each get the number of their own inserted flows', async () => {
  const bodies = Array.from({ length: 40 }, (_, i) => flows((i * 7) % 30))
  const shared = flow()
  const answers = await Promise.all(bodies.map((body) => post([...body, again(shared)])))
  const beyond = answers.map((inserted, i) => inserted - bodies[i]!.length)
  assert.deepEqual(beyond.sort(), [...Array(39).fill(0), 1])
})

for (const { what, body, headers } of acceptedSpellings([flow({ uuid: 'spelled' })] as unknown as Record<
  string,
  unknown
>)) {
  test(`POST /pod/traffic/batch 200: ${what}`, async () => {
    await app.sql`delete from traffic where uuid = 'spelled'`
    app.deps.seen.clear()
    const answer = await app.post('/pod/traffic/batch', body, { headers: headers as Record<string, string> })
    assert.deepEqual([answer.status, answer.text], [200, '1'])
  })
}

// ---- Peers ----------------------------------------------------------------------------------------------------------

test('POST /pod/traffic/batch 200: flows to one address are stamped with the peer at their own time', async () => {
  const pod_ip = '10.60.0.1'
  const T = (time: string) => `2024-05-01T${time}`
  for (const one of [
    { pod_name: 'first', started_at: T('08:00:00'), time_stamp: T('09:00:00'), is_dead: true },
    { pod_name: 'second', started_at: T('09:30:00'), time_stamp: T('10:00:00'), is_dead: true, host_network: true },
    { pod_name: 'third', started_at: T('11:00:00'), time_stamp: T('11:00:00') },
  ])
    assert.equal((await app.post('/pod/spec', podPost({ pod_ip, pod_ips: ['fd60::1'], ...one }))).status, 200)
  assert.equal((await app.post('/svc/spec', servicePost({ svc_ip: 'fd60::1', svc_name: 'svc' }))).status, 200)
  const expected = {
    '07:59:59.999999': [null, null],
    '08:00:00': ['pod', 'first'],
    '09:00:00': ['pod', 'first'],
    '09:00:00.000001': [null, null],
    '09:30:00': ['node', 'second'],
    '10:00:00': ['node', 'second'],
    '10:00:00.000001': [null, null],
    '11:00:00': ['pod', 'third'],
    '23:00:00': ['pod', 'third'],
  }
  const body = Object.keys(expected).flatMap((time) =>
    [pod_ip, `::ffff:${pod_ip}`, 'FD60::1'].map((traffic_in_out_ip, i) =>
      flow({
        pod_name: 'by-time',
        traffic_in_out_ip,
        traffic_in_out_port: `${i}`,
        pod_port: time,
        time_stamp: T(time),
      }),
    ),
  )
  assert.equal(await post([...body, flow({ pod_name: 'by-time', traffic_in_out_ip: null })]), body.length + 1)
  const { json } = await app.get('/pod/traffic/by-time')
  assert.equal(json.length, body.length + 1)
  for (const row of json) {
    const found = expected[row.pod_port as keyof typeof expected] ?? [null, null]
    const isService = found[0] === null && row.traffic_in_out_ip === 'fd60::1'
    assert.deepEqual(
      [row.peer_kind, row.peer_name],
      isService ? ['service', 'svc'] : found,
      `${row.traffic_in_out_ip} ${row.pod_port}`,
    )
    assert.equal(row.peer_resolved_at === null, row.peer_kind === null)
  }
})

test('POST /pod/traffic/batch 200: peer fields sent by a client are discarded', async () => {
  const lie = flow({
    pod_name: 'liar',
    peer_kind: 'external',
    peer_name: 'x',
    peer_resolved_at: '2024-05-01T10:00:00',
    peer_uid: 7,
  })
  assert.equal(await post([lie]), 1)
  const { json } = await app.get('/pod/traffic/liar')
  for (const key of Object.keys(json[0]).filter((one) => one.startsWith('peer_'))) assert.equal(json[0][key], null)
})

// ---- Refused bodies -------------------------------------------------------------------------------------------------

const assertRefused = async (status: number, says: RegExp, body: unknown, headers?: Record<string, string>) => {
  const before = await rows()
  const answer = await app.post('/pod/traffic/batch', body, headers ? { headers } : {})
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.text, says)
  assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  assert.equal(await rows(), before)
}

// `refusedBodies` makes bodies of one object. Where the fault is within the object, an array is put around it.
const wrapped = (body: string | Uint8Array) => Buffer.concat([Buffer.from('['), Buffer.from(body), Buffer.from(']')])
const isWithin = (what: string) => /U\+0000|surrogate|UTF-8|content type/.test(what)
const refused = refusedBodies(flow({ uuid: 'refused' }), 'pod_name').filter(
  ({ what }) => !what.includes('where an object is due'),
)

for (const { what, says, body, headers } of refused.filter(({ status }) => status === 400)) {
  const text = new RegExp(
    says.source.replace('^Json deserialize error: pod_name', '^Json deserialize error: \\[0\\]\\.pod_name'),
    says.flags,
  )
  test(`POST /pod/traffic/batch 400: ${what}`, () =>
    assertRefused(400, isWithin(what) ? text : says, isWithin(what) ? wrapped(body) : body, headers))
}

for (const { what, says, body, headers } of refused.filter(({ status }) => status === 413))
  test(`POST /pod/traffic/batch 413: ${what}`, () => assertRefused(413, says, body, headers))

for (const { what, says, body, headers } of refused.filter(({ status }) => status === 415))
  test(`POST /pod/traffic/batch 415: ${what}`, () => assertRefused(415, says, wrapped(body), headers))

test('POST /pod/traffic/batch 400: a body that is not an array', async () => {
  for (const body of ['null', '7', '"text"', '{}', JSON.stringify(flow()), JSON.stringify({ 0: flow(), length: 1 })])
    await assertRefused(400, /^Json deserialize error: .*expected array/, body)
})

test('POST /pod/traffic/batch 400: an element that is not an object is named by its index', async () => {
  for (const element of [null, 7, 'text', [], [flow()], true])
    await assertRefused(400, /^Json deserialize error: \[2\]: .*expected object/, [flow(), flow(), element, flow()])
})

test('POST /pod/traffic/batch 400: a bad element is named by index and field, and nothing of the body is written', async () => {
  const bad: [string, unknown, RegExp][] = [
    ['uuid', undefined, /expected string/],
    ['uuid', null, /expected string/],
    ['uuid', 'x'.repeat(129), /128/],
    ['time_stamp', undefined, /expected string/],
    ['time_stamp', '2024-05-01T10:00:00Z', /no zone/],
    ['pod_name', 7, /expected string/],
    ['pod_name', 'x'.repeat(254), /253/],
    ['pod_ip', {}, /expected string/],
    ['pod_port', 8080, /expected string/],
    ['ip_protocol', 'x'.repeat(65), /64/],
    ['traffic_in_out_ip', 'x'.repeat(129), /128/],
    ['traffic_in_out_port', [], /expected string/],
    ['decision', true, /expected string/],
    ['drop_cause', 'x'.repeat(65), /64/],
    ['syn_retries', 1.5, /expected/],
    ['syn_retries', '4', /expected number/],
  ]
  for (const [field, value, rule] of bad)
    for (const index of [0, 1, 99]) {
      const body: object[] = flows(100)
      body[index] = flow({ [field]: value })
      const says = new RegExp(`^Json deserialize error: \\[${index}\\]\\.${field}: .*${rule.source}`)
      await assertRefused(400, says, body)
    }
})

test('POST /pod/traffic/batch 400: the first of several bad elements of one kind is named', async () => {
  const late = flow({ time_stamp: 'late' })
  await assertRefused(400, /^Json deserialize error: \[1\]\.time_stamp: /, [
    flow(),
    late,
    flow({ pod_name: 'x'.repeat(254) }),
    late,
  ])
  await assertRefused(400, /^Json deserialize error: \[1\]\.pod_name: /, [
    flow(),
    flow({ pod_name: 7 }),
    flow({ uuid: 7 }),
  ])
})

test('POST /pod/traffic/batch 400: U+0000 and half a surrogate are named by index and field', async () => {
  const at = (index: number, escaped: string) => {
    const body: object[] = flows(index + 2)
    body[index] = flow({ decision: '@' })
    return JSON.stringify(body).replace('"@"', `"${escaped}"`)
  }
  await assertRefused(400, /^Json deserialize error: \[37\]\.decision: U\+0000/, at(37, 'a\\u0000'))
  await assertRefused(400, /^Json deserialize error: \[5\]\.decision: half a surrogate pair/, at(5, '\\ud83d'))
})

test('POST /pod/traffic/batch 400: the flows of a refused body are not remembered', async () => {
  const good = flow()
  await assertRefused(400, /\[1\]/, [good, flow({ time_stamp: BAD_TIMES[0] })])
  await assertStored([good], [good])
})

// ---- Over a socket --------------------------------------------------------------------------------------------------

const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
after(() => {
  server.closeAllConnections()
  server.close()
})

/** Sends bytes as they are and reads until the connection ends or the answer matches `enough`. */
async function raw(parts: (string | Buffer)[], enough: RegExp): Promise<string> {
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1')
  let heard = ''
  socket.on('error', () => {})
  const done = new Promise<void>((resolve) => {
    socket.on('data', (bytes) => {
      heard += bytes
      if (enough.test(heard)) resolve()
    })
    socket.on('close', () => resolve())
  })
  await once(socket, 'connect')
  for (const part of parts) socket.write(part)
  await done
  socket.destroy()
  return heard
}
const HEAD = 'POST /pod/traffic/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

test('POST /pod/traffic/batch 200: a chunked body in small pieces', async () => {
  const text = JSON.stringify(flows(3))
  const pieces = text.match(/.{1,50}/g)!.map(chunk)
  assert.match(
    await raw([`${HEAD}transfer-encoding: chunked\r\n\r\n`, ...pieces, '0\r\n\r\n'], /\r\n\r\n3$/),
    /^HTTP\/1.1 200 /,
  )
})

test('POST /pod/traffic/batch 413: a body without a length that grows beyond the limit', async () => {
  const pieces = Array.from({ length: 40 }, () => chunk(' '.repeat(64 * 1024)))
  assert.match(await raw([`${HEAD}transfer-encoding: chunked\r\n\r\n`, ...pieces], /larger than/), /^HTTP\/1.1 413 /)
})

test('POST /pod/traffic/batch 413: an announced length over the limit is refused before the body is sent', async () => {
  assert.match(
    await raw([`${HEAD}content-length: ${MAX_CORE_BODY_BYTES + 1}\r\n\r\n`], /larger than/),
    /^HTTP\/1.1 413 /,
  )
})

test('POST /pod/traffic/batch 400: a connection that ends within the body stores nothing', async () => {
  const text = JSON.stringify(flows(2))
  const before = await rows()
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`${HEAD}content-length: ${text.length + 10}\r\n\r\n${text}`)
  socket.end()
  await once(socket.resume(), 'close')
  assert.equal(await post(flows(1)), 1)
  assert.equal(await rows(), before + 1)
})

// ---- Access and failures --------------------------------------------------------------------------------------------

const INGEST = { token: TOKENS.BROKER_TOKEN_INGEST }

test('POST /pod/traffic/batch 401: no token, or an unknown one, in any spelling of the path', async () => {
  for (const path of ['/pod/traffic/batch', '/pod/traffic/%62atch', '/pod/%74raffic/batch']) {
    assertUnauthorized(await guarded.post(path, flows(1)))
    assertUnauthorized(await guarded.post(path, 'not even JSON', { token: 'unknown' }))
  }
})

test('POST /pod/traffic/batch 403: a token without the scope ingest', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post('/pod/traffic/batch', flows(1), { token }), 'ingest')
  assert.equal((await guarded.sql`select from traffic`).length, 0)
})

test('POST /pod/traffic/batch 200: the token of agents and the shared token may post', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assert.equal((await guarded.post('/pod/traffic/batch', flows(1), { token })).text, '1')
})

test('POST /pod/traffic/batch 404: another method or a longer path is answered before the token is checked', async () => {
  for (const [method, path] of [
    ['PUT', '/pod/traffic/batch'],
    ['POST', '/pod/traffic/batch/'],
    ['POST', '/pod/traffic/batch/1'],
    ['POST', '/pod/traffic/Batch'],
  ] as const) {
    const answer = await guarded.request(method, path, { body: flows(1) })
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('POST /pod/traffic/batch 503: the database cancels the statement; nothing was written and a retry stores all', async () => {
  const body = flows(10).map((one, i) => ({ ...one, ip_protocol: i % 2 ? 'TCP' : 'UDP' }))
  await whileRefused(guarded.sql, 'traffic', async () =>
    assertDatabaseBusy(await guarded.post('/pod/traffic/batch', body, INGEST)),
  )
  assert.equal((await guarded.post('/pod/traffic/batch', body, INGEST)).text, '10')
})

test('POST /pod/traffic/batch 503: every request that waits for the statement gets 503, and all retries succeed', async () => {
  const bodies = Array.from({ length: 5 }, () => flows(3))
  const send = () => Promise.all(bodies.map((body) => guarded.post('/pod/traffic/batch', body, INGEST)))
  await whileRefused(guarded.sql, 'traffic', async () => {
    for (const answer of await send()) assertDatabaseBusy(answer)
  })
  assert.deepEqual(
    (await send()).map(({ text }) => text),
    ['3', '3', '3', '3', '3'],
  )
})

test('POST /pod/traffic/batch 503: there is no database connection; an empty body is still answered', async () => {
  const ended = await startApp()
  await ended.db.end()
  const answer = await ended.post('/pod/traffic/batch', flows(1))
  assert.equal(answer.status, 503)
  assert.equal(answer.headers.get('retry-after'), '1')
  assert.equal((await ended.post('/pod/traffic/batch', [])).text, '0')
})
