import assert from 'node:assert/strict'
import test from 'node:test'
import { parseNaive } from '../../lib/time/timestamp.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost, servicePost } from '../support/records.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  refusedBodies,
  whileLocked,
  whileRefused,
} from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const guarded = await startApp(TOKENS)

const KEYS = [
  ...['uuid', 'pod_name', 'pod_namespace', 'pod_ip', 'pod_port', 'ip_protocol', 'traffic_type', 'traffic_in_out_ip'],
  ...['traffic_in_out_port', 'decision', 'time_stamp', 'peer_kind', 'peer_namespace', 'peer_name', 'peer_uid'],
  ...['peer_workload_kind', 'peer_workload_name', 'peer_resolved_at', 'drop_cause', 'syn_retries'],
]
const NO_PEER = {
  peer_kind: null,
  peer_namespace: null,
  peer_name: null,
  peer_uid: null,
  peer_workload_kind: null,
  peer_workload_name: null,
  peer_resolved_at: null,
}

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
const again = (one: Record<string, unknown>, fields: Record<string, unknown> = {}) =>
  flow({ ...one, uuid: `again-${made}`, ...fields })

async function post(body: unknown) {
  const answer = await app.post('/pod/traffic', body)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const isStored = async (uuid: string) => (await app.sql`select from traffic where uuid = ${uuid}`).length === 1
const assertNew = async (one: { uuid: string }) => {
  assert.equal((await post(one))?.uuid, one.uuid)
  assert.ok(await isStored(one.uuid))
}
const assertDuplicate = async (one: { uuid: string }) => {
  assert.equal(await post(one), null)
}
const rows = async () => Number((await app.sql`select count(*) from traffic`)[0]!.count)
const arrange = async (path: string, body: unknown) => assert.equal((await app.post(path, body)).status, 200)
const T = (time: string) => `2024-05-01T${time}`

test('POST /pod/traffic 200: the answer is the stored row, with all keys in wire order, as in the list', async () => {
  const sent = flow({
    time_stamp: '2030-01-01T00:00:00.000001',
    drop_cause: 'no-policy',
    syn_retries: 4,
    decision: 'DROP',
  })
  const answer = await app.post('/pod/traffic', sent)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(Object.keys(answer.json), KEYS)
  assert.deepEqual(answer.json, { ...sent, ...NO_PEER })
  const list = await app.get('/pod/traffic?limit=1')
  assert.deepEqual(Object.keys(list.json[0]), KEYS)
  assert.deepEqual(list.json, [answer.json])
})

test('POST /pod/traffic 200: a uuid and a time are enough; all other fields are null', async () => {
  const bare = { uuid: 'bare', time_stamp: T('10:00:00') }
  const stored = await post(bare)
  assert.deepEqual(Object.keys(stored), KEYS)
  assert.deepEqual(stored, Object.fromEntries(KEYS.map((key) => [key, (bare as Record<string, string>)[key] ?? null])))
})

test('POST /pod/traffic 200: the answer to a duplicate is null, and nothing is written', async () => {
  const one = flow()
  await assertNew(one)
  const before = await rows()
  const answer = await app.post('/pod/traffic', again(one))
  assert.equal(answer.text, 'null')
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(await rows(), before)
})

test('POST /pod/traffic 200: inserted and duplicate flows are counted', async () => {
  const counts = async () => {
    const { values } = await app.deps.metrics.flows.get()
    const of = (outcome: string) => values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0
    return [of('inserted'), of('duplicate')] as const
  }
  const [inserted, duplicate] = await counts()
  const one = flow()
  await assertNew(one)
  await assertDuplicate(again(one))
  app.deps.seen.clear()
  await assertDuplicate(again(one))
  assert.deepEqual(await counts(), [inserted + 1, duplicate + 2])
})

for (const [sent, stored] of Object.entries(GOOD_TIMES)) {
  test(`POST /pod/traffic 200: ${sent} is stored as ${stored}`, async () => {
    assert.equal((await post(flow({ time_stamp: sent }))).time_stamp, stored)
  })
}

test('POST /pod/traffic 200: the row has the workload of its pod, and the transaction that stored it', async () => {
  const stamps = async (one: { uuid: string }) => {
    const [row] = await app.sql`
      select pod_workload_kind as kind, pod_workload_name as name, first_tx,
             tx < pg_current_xact_id() as is_earlier
      from traffic where uuid = ${one.uuid}`
    return { ...row }
  }
  const send = async (fields: Record<string, unknown>) => {
    const one = flow({ pod_namespace: 'shop', time_stamp: '2024-05-01T10:00:00', ...fields })
    await assertNew(one)
    return stamps(one)
  }
  const unknown = { kind: null, name: null, first_tx: null, is_earlier: true }
  const started = { pod_namespace: 'shop', started_at: '2024-05-01T10:00:00' }
  const manifest = (...owners: object[]) => ({ metadata: { uid: 'u', ownerReferences: owners } })
  const named = { workload_kind: 'StatefulSet', workload_name: 'db' }
  await arrange('/pod/spec', podPost({ pod_name: 'owned', ...started, ...named }))
  await arrange('/pod/spec', podPost({ pod_name: 'ownerless', ...started, pod_obj: manifest() }))
  await arrange('/pod/spec', podPost({ pod_name: 'half', ...started, workload_kind: 'Job', pod_obj: manifest() }))
  await arrange(
    '/pod/spec',
    podPost({
      pod_name: 'blank',
      ...started,
      workload_kind: ' ',
      workload_name: 'x',
      pod_obj: manifest({ kind: 'Job' }),
    }),
  )
  await arrange('/pod/spec', podPost({ pod_name: 'static', ...started, pod_obj: manifest({ kind: 'Node' }) }))
  await arrange('/pod/spec', podPost({ pod_name: 'late', ...started, pod_obj: manifest({ kind: 'ReplicaSet' }) }))
  await arrange('/pod/spec', podPost({ pod_name: 'unsaid', ...started }))
  await arrange('/pod/spec', podPost({ pod_name: 'startless', pod_namespace: 'shop', ...named }))
  const known = { first_tx: null, is_earlier: true }
  assert.deepEqual(await send({ pod_name: 'owned' }), { kind: 'StatefulSet', name: 'db', ...known })
  for (const name of ['ownerless', 'half', 'static'])
    assert.deepEqual(await send({ pod_name: name }), { kind: 'Pod', name, ...known })
  for (const name of ['late', 'blank', 'unsaid']) assert.deepEqual(await send({ pod_name: name }), unknown)
  for (const fields of [
    { pod_name: 'startless' },
    { pod_name: 'nobody' },
    { pod_name: 'owned', pod_namespace: 'bank' },
    { pod_name: 'owned', pod_namespace: null },
    { pod_name: 'owned', time_stamp: '2024-05-01T09:59:59.999999' },
  ])
    assert.deepEqual(await send(fields), unknown)
})

test('POST /pod/traffic 200: unknown keys are ignored, whatever they hold', async () => {
  const one = flow()
  const text = JSON.stringify({ ...one, extra: { deep: ['["'.repeat(10)] }, UUID: 7 }).replace(
    '{',
    '{"__proto__":{"uuid":1},',
  )
  assert.equal((await post(text)).uuid, one.uuid)
})

test('POST /pod/traffic 200: peer fields sent by a client are discarded', async () => {
  const lies = {
    peer_kind: 'external',
    peer_namespace: 'evil',
    peer_name: 'evil',
    peer_uid: 'evil',
    peer_workload_kind: 'evil',
    peer_workload_name: 'evil',
    peer_resolved_at: T('10:00:00'),
  }
  const stored = await post(flow(lies))
  for (const key of Object.keys(NO_PEER)) assert.equal(stored[key], null)
  await post(flow({ ...lies, peer_kind: 7, peer_resolved_at: 'never', peer_name: { a: 1 } }))
})

test('POST /pod/traffic 200: values outside the known lists are stored unchanged', async () => {
  const odd = {
    ip_protocol: 'UNKNOWN(143)',
    traffic_type: 'sideways',
    decision: '',
    pod_port: ' 8080 ',
    pod_name: ' \u{1f680}"\\\n\u001f\u0001',
  }
  const stored = await post(flow(odd))
  for (const [key, value] of Object.entries(odd)) assert.equal(stored[key], value)
})

for (const { what, body, headers } of acceptedSpellings(flow({ uuid: 'spelled' }))) {
  test(`POST /pod/traffic 200: ${what}`, async () => {
    await app.sql`delete from traffic where uuid = 'spelled'`
    app.deps.seen.clear()
    const answer = await app.post('/pod/traffic', body, { headers })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json.uuid, 'spelled')
  })
}

test('POST /pod/traffic 200: both addresses are made canonical before they are compared', async () => {
  const one = flow({ pod_ip: 'FD00:0:0::A', traffic_in_out_ip: '::ffff:10.3.0.1' })
  const stored = await post(one)
  assert.equal(stored.pod_ip, 'fd00::a')
  assert.equal(stored.traffic_in_out_ip, '10.3.0.1')
  await assertDuplicate(again(one, { pod_ip: 'fd00::a', traffic_in_out_ip: '::FFFF:a03:1' }))
  app.deps.seen.clear()
  await assertDuplicate(again(one, { pod_ip: 'fd00:0::000a', traffic_in_out_ip: '10.3.0.1' }))
})

for (const odd of ['', 'None', 'fe80::1%eth0', '10.0.0.0/8', '010.0.0.1', ' 10.0.0.1', '::10.0.0.1']) {
  test(`POST /pod/traffic 200: the address ${JSON.stringify(odd)} is accepted`, async () => {
    const one = flow({ pod_ip: odd, traffic_in_out_ip: odd })
    const kept = odd === '::10.0.0.1' ? '::a00:1' : odd
    const stored = await post(one)
    assert.deepEqual([stored.pod_ip, stored.traffic_in_out_ip], [kept, kept])
    await assertDuplicate(again(one))
  })
}

// ---- Duplicates of flows in memory and in the table -----------------------------------------------------------------

const MEMBERS = {
  pod_ip: '10.1.0.99',
  pod_port: '8080',
  traffic_type: 'INGRESS',
  traffic_in_out_ip: '10.9.9.9',
  traffic_in_out_port: '80',
  decision: 'DROP',
}
const PORTS = ['pod_port', 'traffic_in_out_port']

for (const [member, other] of Object.entries(MEMBERS)) {
  test(`POST /pod/traffic 200: TCP with another ${member} is another flow`, async () => {
    const one = flow({ pod_ip: `10.1.1.${made}` })
    await assertNew(one)
    await assertNew(again(one, { [member]: other }))
  })

  test(`POST /pod/traffic 200: UDP with another ${member} is ${PORTS.includes(member) ? 'the same' : 'another'} flow`, async () => {
    for (const forget of [false, true]) {
      const one = flow({ pod_ip: `10.1.2.${made}`, ip_protocol: 'UDP' })
      await assertNew(one)
      if (forget) app.deps.seen.clear()
      const second = again(one, { [member]: other })
      await (PORTS.includes(member) ? assertDuplicate(second) : assertNew(second))
    }
  })

  test(`POST /pod/traffic 200: a TCP flow without ${member} is never a duplicate`, async () => {
    const one = flow({ [member]: null })
    const { size } = app.deps.seen
    await assertNew(one)
    await assertNew(again(one))
    await assertNew(again(one, { [member]: undefined }))
    assert.equal(app.deps.seen.size, size)
  })

  test(`POST /pod/traffic 200: a UDP flow without ${member} is ${PORTS.includes(member) ? 'compared by the other port' : 'never a duplicate'}`, async () => {
    const one = flow({ [member]: null, ip_protocol: 'UDP', pod_ip: member === 'pod_ip' ? null : `10.1.3.${made}` })
    await assertNew(one)
    const second = again(one)
    await (PORTS.includes(member) ? assertDuplicate(second) : assertNew(second))
  })
}

test('POST /pod/traffic 200: UDP with both ports changed is another flow', async () => {
  const one = flow({ ip_protocol: 'UDP' })
  await assertNew(one)
  await assertNew(again(one, { pod_port: '1', traffic_in_out_port: '1' }))
  await assertDuplicate(again(one, { pod_port: '1', traffic_in_out_port: '443' }))
})

test('POST /pod/traffic 200: a UDP flow without either port is never a duplicate', async () => {
  const one = flow({ ip_protocol: 'UDP', pod_port: null, traffic_in_out_port: null })
  await assertNew(one)
  await assertNew(again(one))
})

for (const first of ['TCP', 'SCTP', 'UDP', null]) {
  for (const second of ['TCP', 'ICMPv6', 'UDP', 'udp', null]) {
    test(`POST /pod/traffic 200: ${second} after ${first} with the same six members is a duplicate`, async () => {
      const one = flow({ ip_protocol: first })
      await assertNew(one)
      await assertDuplicate(again(one, { ip_protocol: second }))
      app.deps.seen.clear()
      await assertDuplicate(again(one, { ip_protocol: second }))
    })
  }
}

test('POST /pod/traffic 200: a UDP flow is compared by five members with rows of any protocol; other flows are compared by six with UDP rows', async () => {
  const tcp = flow()
  await assertNew(tcp)
  await assertDuplicate(again(tcp, { ip_protocol: 'UDP', pod_port: '1' }))
  await assertDuplicate(again(tcp, { ip_protocol: 'UDP', traffic_in_out_port: '1' }))
  const udp = flow({ ip_protocol: 'UDP' })
  await assertNew(udp)
  await assertNew(again(udp, { ip_protocol: 'TCP', pod_port: '1' }))
  await assertNew(again(udp, { ip_protocol: 'udp', pod_port: '2' }))
})

test('POST /pod/traffic 200: uuid, time, names, cause and retries are not part of the key', async () => {
  const one = flow()
  await assertNew(one)
  const changed = {
    time_stamp: '2031-01-01T00:00:00',
    pod_name: 'other',
    pod_namespace: null,
    drop_cause: 'unknown',
    syn_retries: 9,
  }
  await assertDuplicate(again(one, changed))
  app.deps.seen.clear()
  await assertDuplicate(again(one, changed))
})

test('POST /pod/traffic 200: a flow is compared with rows of any age, and the first row is kept', async () => {
  const one = flow({ time_stamp: '1999-12-31T23:59:59.123456' })
  const stored = await post(one)
  app.deps.seen.clear()
  await assertDuplicate(again(one, { time_stamp: '2024-05-01T10:00:00' }))
  const [kept] = await app.sql`select to_json(t) as row from traffic t where uuid = ${one.uuid}`
  assert.equal(kept!.row.time_stamp, stored.time_stamp)
})

test('POST /pod/traffic 200: a repeated uuid is a duplicate, not an error', async () => {
  const one = flow()
  await assertNew(one)
  await assertDuplicate(flow({ uuid: one.uuid }))
  const bare = { uuid: one.uuid, time_stamp: T('11:00:00') }
  await assertDuplicate(bare)
  const [kept] = await app.sql`select traffic_in_out_ip from traffic where uuid = ${one.uuid}`
  assert.equal(kept!.traffic_in_out_ip, one.traffic_in_out_ip)
})

test('POST /pod/traffic 200: a uuid is unique on the day of its flow, from its first to its last moment', async () => {
  const one = flow({ time_stamp: '2026-03-01T00:00:00' })
  await assertNew(one)
  await assertDuplicate(flow({ uuid: one.uuid, time_stamp: '2026-03-01T23:59:59.999999' }))
  for (const time_stamp of ['2026-02-28T23:59:59.999999', '2026-03-02T00:00:00']) {
    const other = flow({ uuid: one.uuid, time_stamp })
    assert.equal((await post(other)).traffic_in_out_ip, other.traffic_in_out_ip)
    await assertDuplicate(flow({ uuid: one.uuid, time_stamp }))
  }
})

test('POST /pod/traffic 200: a flow refused for its uuid alone is stored under another', async () => {
  for (const ip_protocol of ['TCP', 'UDP']) {
    const taken = flow({ ip_protocol })
    await assertNew(taken)
    const other = flow({ ip_protocol, uuid: taken.uuid })
    await assertDuplicate(other)
    await assertDuplicate(other)
    await assertNew(again(other))
  }
})

test('POST /pod/traffic 200: the same flow from fifty clients at once is stored once', async () => {
  for (const ip_protocol of ['TCP', 'UDP']) {
    const one = flow({ ip_protocol })
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => post({ ...one, uuid: `${one.uuid}-${i}` })))
    const stored = answers.filter((answer) => answer !== null)
    assert.equal(stored.length, 1)
    const found = await app.sql`select uuid from traffic where traffic_in_out_ip = ${one.traffic_in_out_ip}`
    assert.deepEqual(
      found.map(({ uuid }) => uuid),
      [stored[0].uuid],
    )
  }
})

test('POST /pod/traffic 200: many different flows at once each get their own row', async () => {
  const flows = Array.from({ length: 200 }, () => flow())
  const answers = await Promise.all(flows.map(post))
  assert.deepEqual(
    answers.map(({ uuid, traffic_in_out_ip }) => [uuid, traffic_in_out_ip]),
    flows.map(({ uuid, traffic_in_out_ip }) => [uuid, traffic_in_out_ip]),
  )
})

// ---- Confirmed flows in memory --------------------------------------------------------------------------------------

test('POST /pod/traffic 200: a confirmed flow is not looked up in the database again', async () => {
  const one = flow()
  await assertNew(one)
  await app.sql`delete from traffic where uuid = ${one.uuid}`
  await assertDuplicate(again(one))
  assert.equal(await isStored(one.uuid), false)
  await assertNew(flow())
  app.deps.seen.clear()
  await assertNew(again(one))
})

test('POST /pod/traffic 200: a duplicate that was found in the table is remembered as well', async () => {
  const one = flow()
  await assertNew(one)
  app.deps.seen.clear()
  await assertDuplicate(again(one))
  await app.sql`delete from traffic where uuid = ${one.uuid}`
  await assertDuplicate(again(one))
})

test('POST /pod/traffic 200: repeats are recognised while the table is locked', async () => {
  const one = flow()
  await assertNew(one)
  await whileLocked(app.sql, 'traffic', () => assertDuplicate(again(one)))
})

test('POST /pod/traffic 200: confirmed flows are forgotten when the database connections are lost', async () => {
  const one = flow()
  await assertNew(one)
  await app.sql`delete from traffic where uuid = ${one.uuid}`
  await app.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'broker-test' and datname = current_database()`
  await until('the loss was noticed', () => app.deps.seen.size === 0)
  await assertNew(again(one))
})

// ---- Attribution of the peer ----------------------------------------------------------------------------------------

const PEER_POD = {
  pod_namespace: 'data',
  pod_obj: { metadata: { uid: 'uid-db' } },
  workload_kind: 'StatefulSet',
  workload_name: 'db',
  host_network: false,
  started_at: T('09:00:00.000001'),
}
const pod = async (fields: Record<string, unknown>) => {
  const one = podPost({ ...PEER_POD, ...fields })
  await arrange('/pod/spec', one)
  return one
}
const service = (fields: Record<string, unknown>) =>
  arrange(
    '/svc/spec',
    servicePost({ svc_name: 'db', svc_namespace: 'data', service_spec: { metadata: { uid: 'uid-svc' } }, ...fields }),
  )
/** Kind and name that a flow to the address is stamped with. */
const peerOf = async (traffic_in_out_ip: unknown, time: string, fields: Record<string, unknown> = {}) => {
  const stored = await post(
    flow({ traffic_in_out_ip, time_stamp: T(time), traffic_in_out_port: `p${made}`, ...fields }),
  )
  assert.equal(stored.peer_kind === null, stored.peer_resolved_at === null)
  return [stored.peer_kind, stored.peer_name]
}
const NOBODY = [null, null]

test('POST /pod/traffic 200: a flow to a pod is stamped with its workload, its uid and the time of the stamp', async () => {
  const { pod_name } = await pod({ pod_ip: '10.50.0.1' })
  const now = async () => parseNaive((await app.sql`select to_json(now() at time zone 'utc') as now`)[0]!.now)!
  const before = await now()
  const { peer_resolved_at, ...stored } = await post(flow({ traffic_in_out_ip: '10.50.0.1' }))
  assert.equal(stored.peer_kind, 'pod')
  assert.equal(stored.peer_namespace, 'data')
  assert.equal(stored.peer_name, pod_name)
  assert.equal(stored.peer_uid, 'uid-db')
  assert.equal(stored.peer_workload_kind, 'StatefulSet')
  assert.equal(stored.peer_workload_name, 'db')
  assert.match(peer_resolved_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}(\d{3})?)?$/)
  const seconds = (time: string) => time.slice(0, 19)
  assert.ok(seconds(before) <= seconds(peer_resolved_at) && seconds(peer_resolved_at) <= seconds(await now()))
})

test('POST /pod/traffic 200: a bare pod without a manifest has neither workload nor uid', async () => {
  await pod({
    pod_ip: '10.50.1.1',
    pod_name: 'bare',
    pod_obj: null,
    workload_kind: null,
    workload_name: null,
    pod_namespace: null,
  })
  const stored = await post(flow({ traffic_in_out_ip: '10.50.1.1' }))
  assert.deepEqual(
    [
      stored.peer_kind,
      stored.peer_name,
      stored.peer_namespace,
      stored.peer_uid,
      stored.peer_workload_kind,
      stored.peer_workload_name,
    ],
    ['pod', 'bare', null, null, null, null],
  )
  await pod({ pod_ip: '10.50.1.2', pod_obj: { metadata: { uid: '' } } })
  assert.equal((await post(flow({ traffic_in_out_ip: '10.50.1.2' }))).peer_uid, null)
})

test('POST /pod/traffic 200: a pod is a peer from its start on, to the microsecond', async () => {
  const { pod_name } = await pod({ pod_ip: '10.51.0.1', started_at: T('09:00:00.000001') })
  assert.deepEqual(await peerOf('10.51.0.1', '09:00:00'), NOBODY)
  assert.deepEqual(await peerOf('10.51.0.1', '09:00:00.000001'), ['pod', pod_name])
  assert.deepEqual(await peerOf('10.51.0.1', '09:00:00.000001999'), ['pod', pod_name])
  assert.deepEqual(await peerOf('10.51.0.1', '23:59:59.999999'), ['pod', pod_name])
})

test('POST /pod/traffic 200: a dead pod is a peer up to its last record, to the microsecond', async () => {
  const { pod_name } = await pod({ pod_ip: '10.51.1.1', time_stamp: T('10:00:00.000001'), is_dead: true })
  assert.deepEqual(await peerOf('10.51.1.1', '10:00:00.000001'), ['pod', pod_name])
  assert.deepEqual(await peerOf('10.51.1.1', '10:00:00.000002'), NOBODY)
  assert.deepEqual(await peerOf('10.51.1.1', '08:59:59'), NOBODY)
})

test('POST /pod/traffic 200: marking dead bounds a pod by its last record', async () => {
  const { pod_name } = await pod({ pod_ip: '10.51.2.1', time_stamp: T('10:00:00') })
  assert.deepEqual(await peerOf('10.51.2.1', '10:00:00.000001'), ['pod', pod_name])
  await arrange('/pod/mark_dead', { pod_name })
  assert.deepEqual(await peerOf('10.51.2.1', '10:00:00.000001'), NOBODY)
  assert.deepEqual(await peerOf('10.51.2.1', '10:00:00'), ['pod', pod_name])
})

test('POST /pod/traffic 200: a pod without a known start is never a peer; a service with the same address is', async () => {
  await pod({ pod_ip: '10.51.3.1', started_at: null })
  assert.deepEqual(await peerOf('10.51.3.1', '10:00:00'), NOBODY)
  await service({ svc_ip: '10.51.3.1' })
  assert.deepEqual(await peerOf('10.51.3.1', '10:00:00'), ['service', 'db'])
})

test('POST /pod/traffic 200: a host-network pod is stamped as a node, under the name of the pod', async () => {
  const { pod_name } = await pod({ pod_ip: '10.52.0.1', host_network: true })
  assert.deepEqual(await peerOf('10.52.0.1', '10:00:00'), ['node', pod_name])
  const derived = await pod({ pod_ip: '10.52.0.2', host_network: null, pod_obj: { spec: { hostNetwork: true } } })
  assert.deepEqual(await peerOf('10.52.0.2', '10:00:00'), ['node', derived.pod_name])
  const unknown = await pod({ pod_ip: '10.52.0.3', host_network: null, pod_obj: null })
  assert.deepEqual(await peerOf('10.52.0.3', '10:00:00'), ['pod', unknown.pod_name])
})

test('POST /pod/traffic 200: a pod is the peer for each of its addresses, in any spelling', async () => {
  const { pod_name } = await pod({ pod_ip: '10.53.0.1', pod_ips: ['FD53:0::1', '::ffff:10.53.0.2'] })
  for (const ip of ['10.53.0.1', '::ffff:10.53.0.1', 'fd53::1', 'FD53:0:0:0::0001', '10.53.0.2', '::ffff:a35:2'])
    assert.deepEqual(await peerOf(ip, '10:00:00'), ['pod', pod_name], ip)
  assert.deepEqual(await peerOf('::10.53.0.1', '10:00:00'), NOBODY)
  await arrange('/pod/spec', podPost({ ...PEER_POD, pod_name, pod_ip: '10.53.0.1' }))
  assert.deepEqual(await peerOf('fd53::1', '10:00:00'), NOBODY)
})

test('POST /pod/traffic 200: among pods with one address a live one is preferred, then the latest start, the newest record, the first name', async () => {
  const pod_ip = '10.54.0.1'
  const ranked = [
    { pod_name: 'b-alive-late', started_at: T('09:30:00'), time_stamp: T('10:00:01') },
    { pod_name: 'c-alive-late', started_at: T('09:30:00'), time_stamp: T('10:00:01') },
    { pod_name: 'a-alive-late-older', started_at: T('09:30:00'), time_stamp: T('10:00:00') },
    { pod_name: 'a-alive-early', started_at: T('09:00:00'), time_stamp: T('12:00:00') },
    { pod_name: 'a-dead-late', started_at: T('09:45:00'), time_stamp: T('11:00:00'), is_dead: true },
    { pod_name: 'a-dead-early', started_at: T('09:15:00'), time_stamp: T('11:30:00'), is_dead: true },
  ]
  for (const one of [...ranked].reverse()) await pod({ ...one, pod_ip })
  await pod({ pod_ip, pod_name: 'a-later', started_at: T('10:00:00.000001') })
  for (const { pod_name } of ranked) {
    assert.deepEqual(await peerOf(pod_ip, '10:00:00'), ['pod', pod_name])
    await app.sql`delete from pod where pod_name = ${pod_name}`
  }
  assert.deepEqual(await peerOf(pod_ip, '10:00:00'), NOBODY)
})

test('POST /pod/traffic 200: a pod is preferred to a service with the same address; a service is a peer at any time', async () => {
  const { pod_name } = await pod({ pod_ip: '10.55.0.1', started_at: T('10:00:00') })
  await service({ svc_ip: '::ffff:10.55.0.1', time_stamp: T('12:00:00') })
  assert.deepEqual(await peerOf('10.55.0.1', '10:00:00'), ['pod', pod_name])
  assert.deepEqual(await peerOf('10.55.0.1', '09:59:59.999999'), ['service', 'db'])
  const stored = await post(flow({ traffic_in_out_ip: '10.55.0.1', time_stamp: '1999-01-01T00:00:00' }))
  assert.deepEqual(
    [
      stored.peer_kind,
      stored.peer_namespace,
      stored.peer_name,
      stored.peer_uid,
      stored.peer_workload_kind,
      stored.peer_workload_name,
    ],
    ['service', 'data', 'db', 'uid-svc', null, null],
  )
  assert.notEqual(stored.peer_resolved_at, null)
})

test('POST /pod/traffic 200: without an address, or with an unknown one, all seven peer fields are null', async () => {
  await pod({ pod_ip: '' })
  for (const ip of [null, undefined, '10.56.0.1', 'None', '']) {
    const stored = await post(flow({ traffic_in_out_ip: ip }))
    for (const key of Object.keys(NO_PEER)) assert.equal(stored[key], null, `${key} for ${ip}`)
  }
})

test('POST /pod/traffic 200: the stamp stays when the pod changes and is deleted', async () => {
  const { pod_name } = await pod({ pod_ip: '10.57.0.1' })
  const stored = await post(flow({ traffic_in_out_ip: '10.57.0.1', pod_name: 'stamped' }))
  await arrange('/pod/spec', podPost({ pod_name, pod_ip: '10.57.0.2', is_dead: true }))
  await app.sql`delete from pod where pod_name = ${pod_name}`
  const { json } = await app.get('/pod/traffic/stamped')
  assert.deepEqual(json, [stored])
})

// ---- Refused bodies -------------------------------------------------------------------------------------------------

const assertRefused = async (status: number, says: RegExp, body: unknown, headers?: Record<string, string>) => {
  const before = await rows()
  const answer = await app.post('/pod/traffic', body, headers ? { headers } : {})
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.text, says)
  assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  assert.equal(await rows(), before)
}
const refused = refusedBodies(flow({ uuid: 'refused' }), 'pod_name')

for (const { what, says, body, headers } of refused.filter(({ status }) => status === 400))
  test(`POST /pod/traffic 400: ${what}`, () => assertRefused(400, says, body, headers))

for (const { what, says, body, headers } of refused.filter(({ status }) => status === 413))
  test(`POST /pod/traffic 413: ${what}`, () => assertRefused(413, says, body, headers))

for (const { what, says, body, headers } of refused.filter(({ status }) => status === 415))
  test(`POST /pod/traffic 415: ${what}`, () => assertRefused(415, says, body, headers))

test('POST /pod/traffic 413: an announced length over the limit', () =>
  assertRefused(413, /larger than 2097152 bytes/, JSON.stringify(flow()), { 'content-length': '2097153' }))

test('POST /pod/traffic 400: without uuid or time_stamp', async () => {
  for (const key of ['uuid', 'time_stamp'])
    for (const value of [undefined, null])
      await assertRefused(400, new RegExp(`^Json deserialize error: ${key}: `), flow({ [key]: value }))
})

const TEXTS = KEYS.filter((key) => !key.startsWith('peer_') && key !== 'syn_retries')

test('POST /pod/traffic 400: a value of the wrong type is refused with the name of its field', async () => {
  for (const key of TEXTS)
    for (const value of [7, true, [], {}, ['x']])
      await assertRefused(400, new RegExp(`^Json deserialize error: ${key}: .*expected string`), flow({ [key]: value }))
  for (const value of ['4', true, [], 1.5, 2 ** 53])
    await assertRefused(400, /^Json deserialize error: syn_retries: /, flow({ syn_retries: value }))
  await assertRefused(
    400,
    /^Json deserialize error: syn_retries: /,
    JSON.stringify(flow({ syn_retries: 7 })).replace(':7', ':1e999'),
  )
})

for (const [key, chars] of Object.entries({
  uuid: 128,
  pod_name: 253,
  pod_namespace: 253,
  pod_ip: 128,
  pod_port: 64,
  ip_protocol: 64,
  traffic_type: 64,
  traffic_in_out_ip: 128,
  traffic_in_out_port: 64,
  decision: 64,
  drop_cause: 64,
})) {
  test(`POST /pod/traffic 400: ${key} with more than ${chars} characters`, async () => {
    const longest = flow({ [key]: '\u{ffff}'.repeat(chars) })
    assert.equal((await post(longest))[key], longest[key as keyof typeof longest])
    await assertRefused(
      400,
      new RegExp(`^Json deserialize error: ${key}: .*${chars}`),
      flow({ [key]: 'x'.repeat(chars + 1) }),
    )
  })
}

test('POST /pod/traffic 200: all fields are accepted at their greatest length together', async () => {
  // Characters of three bytes that do not compress: the greatest size that an index may have to hold.
  let state = 1
  const wide = (chars: number) =>
    Array.from({ length: chars }, () => {
      state = (state * 48271) % 0x7fffffff
      return String.fromCharCode(0x4e00 + (state % 0x5000))
    }).join('')
  const one = flow({
    uuid: wide(128),
    pod_name: wide(253),
    pod_namespace: wide(253),
    pod_ip: wide(128),
    pod_port: wide(64),
    ip_protocol: wide(64),
    traffic_type: wide(64),
    traffic_in_out_ip: wide(128),
    traffic_in_out_port: wide(64),
    decision: wide(64),
    drop_cause: wide(64),
    syn_retries: Number.MAX_SAFE_INTEGER,
  })
  const stored = await post(one)
  for (const key of TEXTS) assert.equal(stored[key], one[key as keyof typeof one])
  assert.equal(stored.syn_retries, Number.MAX_SAFE_INTEGER)
  await assertDuplicate(flow({ ...one, uuid: 'short' }))
})

for (const time of BAD_TIMES)
  test(`POST /pod/traffic 400: the time ${JSON.stringify(time)}`, () =>
    assertRefused(400, /^Json deserialize error: time_stamp: expected YYYY-MM-DDTHH:MM:SS/, flow({ time_stamp: time })))

// ---- Access and failures --------------------------------------------------------------------------------------------

const INGEST = { token: TOKENS.BROKER_TOKEN_INGEST }

test('POST /pod/traffic 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.post('/pod/traffic', flow()))
  assertUnauthorized(await guarded.post('/pod/traffic', 'not even JSON', { token: 'unknown' }))
  assertUnauthorized(await guarded.post('/pod/%74raffic', flow()))
})

test('POST /pod/traffic 403: a token without the scope ingest', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post('/pod/traffic', flow(), { token }), 'ingest')
  assert.equal((await guarded.sql`select from traffic`).length, 0)
})

test('POST /pod/traffic 200: the token of agents and the shared token may post', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assert.equal((await guarded.post('/pod/traffic', flow(), { token })).status, 200)
})

test('POST /pod/traffic 404: another method or a longer path is answered before the token is checked', async () => {
  for (const [method, path] of [
    ['PUT', '/pod/traffic'],
    ['DELETE', '/pod/traffic'],
    ['POST', '/pod/traffic/'],
    ['POST', '/pod/traffic/web-0'],
  ] as const) {
    const answer = await guarded.request(method, path, { body: flow() })
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('POST /pod/traffic 503: the database cancels the statement; a retry stores the flow', async () => {
  const one = flow()
  await whileRefused(guarded.sql, 'traffic', async () =>
    assertDatabaseBusy(await guarded.post('/pod/traffic', one, INGEST)),
  )
  const answer = await guarded.post('/pod/traffic', one, INGEST)
  assert.equal(answer.json?.uuid, one.uuid)
})

test('POST /pod/traffic 503: there is no database connection; a known duplicate is still answered', async () => {
  const ended = await startApp()
  const one = flow()
  assert.equal((await ended.post('/pod/traffic', one)).status, 200)
  await ended.db.end()
  const answer = await ended.post('/pod/traffic', flow())
  assert.equal(answer.status, 503)
  assert.equal(answer.headers.get('retry-after'), '1')
  assert.equal((await ended.post('/pod/traffic', again(one))).text, 'null')
})
