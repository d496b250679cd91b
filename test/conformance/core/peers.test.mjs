// Peer attribution: who a flow's other end was.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before } from 'node:test'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

// Attribution at ingest only: the late pass has a broker of its own below.
let b
let late
before(async () => {
  ;[b, late] = await Promise.all([
    startBroker({ env: { PEER_STALE_ALIVE_SECS: '0', PEER_LATE_RESOLVE_WINDOW_SECS: '0' } }),
    startBroker({ env: { PEER_STALE_ALIVE_SECS: '0', PEER_LATE_RESOLVE_INTERVAL_SECS: '5' } }),
  ])
})
after(async () => {
  await Promise.all([b?.stop(), late?.stop()])
})

const ROW_KEYS = [
  'uuid',
  'pod_name',
  'pod_namespace',
  'pod_ip',
  'pod_port',
  'ip_protocol',
  'traffic_type',
  'traffic_in_out_ip',
  'traffic_in_out_port',
  'decision',
  'time_stamp',
  'peer_kind',
  'peer_namespace',
  'peer_name',
  'peer_uid',
  'peer_workload_kind',
  'peer_workload_name',
  'peer_resolved_at',
  'drop_cause',
  'syn_retries',
]
const PEER_KEYS = ROW_KEYS.slice(11, 18)
const NAIVE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?$/
const BASE = Math.floor(Date.now() / 1000) - 2 * 3600
const at = (seconds, fraction = '') =>
  new Date((BASE + seconds) * 1000).toISOString().slice(0, 19) + (fraction && `.${fraction}`)
const ago = (seconds) => new Date(Date.now() - seconds * 1000).toISOString().slice(0, 19)

let count = 0
const name = (stem = 'peer') => `${stem}-r${String(++count).padStart(4, '0')}`
const address = () => {
  const n = ++count
  return `10.40.${n >> 8}.${n & 255}`
}
const address6 = () => `fd40::${(++count).toString(16)}`

async function pod(over = {}, broker = b) {
  const n = name()
  const body = {
    pod_name: n,
    pod_ip: address(),
    pod_namespace: 'shop',
    time_stamp: at(600),
    node_name: 'node-a',
    is_dead: false,
    started_at: at(0),
    workload_kind: 'Deployment',
    workload_name: `${n}-owner`,
    pod_obj: { metadata: { uid: `uid-${n}` } },
    ...over,
  }
  const r = await broker.post('/pod/spec', body)
  assert.equal(r.status, 200, r.text)
  return body
}
async function service(over = {}, broker = b) {
  const n = name('svc')
  const body = {
    svc_ip: address(),
    svc_name: n,
    svc_namespace: 'shop',
    service_spec: { metadata: { uid: `uid-${n}` }, spec: { selector: { app: n } } },
    time_stamp: at(600),
    ...over,
  }
  const r = await broker.post('/svc/spec', body)
  assert.equal(r.status, 200, r.text)
  return body
}
const flow = (ip, time, over = {}) => ({
  uuid: randomUUID(),
  pod_name: name('observed'),
  pod_namespace: 'shop',
  pod_ip: address(),
  pod_port: '0',
  ip_protocol: 'TCP',
  traffic_type: 'EGRESS',
  traffic_in_out_ip: ip,
  traffic_in_out_port: '443',
  decision: 'ALLOW',
  time_stamp: time,
  ...over,
})
/** The stored row of one flow, found by its pod. */
async function stored(f, broker = b) {
  const r = await broker.get(`/pod/traffic/${f.pod_name}`)
  assert.equal(r.status, 200, r.text)
  return r.json.find((row) => row.uuid === f.uuid)
}
async function ingest(flows, broker = b) {
  const r = await broker.post('/pod/traffic/batch', flows)
  assert.equal(r.status, 200, r.text)
  assert.equal(r.json, flows.length)
}
/** Posts one flow and answers its stored row. */
async function seen(ip, time, over) {
  const f = flow(ip, time, over)
  await ingest([f])
  return stored(f)
}
const peerOf = (row) => Object.fromEntries(PEER_KEYS.map((k) => [k, row[k]]))
const NOBODY = Object.fromEntries(PEER_KEYS.map((k) => [k, null]))
function stamped(row, kind, who) {
  const { peer_resolved_at: when, ...peer } = peerOf(row)
  assert.deepEqual(
    peer,
    kind === 'service'
      ? {
          peer_kind: kind,
          peer_namespace: who.svc_namespace,
          peer_name: who.svc_name,
          peer_uid: who.service_spec?.metadata?.uid ?? null,
          peer_workload_kind: null,
          peer_workload_name: null,
        }
      : {
          peer_kind: kind,
          peer_namespace: who.pod_namespace,
          peer_name: who.pod_name,
          peer_uid: who.pod_obj?.metadata?.uid ?? null,
          peer_workload_kind: who.workload_kind,
          peer_workload_name: who.workload_name,
        },
  )
  assert.match(when, NAIVE)
  assert.ok(Math.abs(Date.parse(`${when}Z`) - Date.now()) < 600_000, `stamped at ${when}`)
}
const unresolved = (row) => assert.deepEqual(peerOf(row), NOBODY)

check('peers: a pod peer is stamped with all seven fields, after time_stamp', async () => {
  const p = await pod()
  const row = await seen(p.pod_ip, at(100))
  assert.deepEqual(Object.keys(row), ROW_KEYS)
  stamped(row, 'pod', p)
})

check('peers: a single post answers the stamped row', async () => {
  const p = await pod()
  const f = flow(p.pod_ip, at(100))
  const r = await b.post('/pod/traffic', f)
  assert.equal(r.status, 200)
  assert.deepEqual(Object.keys(r.json), ROW_KEYS)
  stamped(r.json, 'pod', p)
  assert.deepEqual(peerOf(await stored(f)), peerOf(r.json))
})

check('peers: an unknown address leaves all seven null, never external', async () => {
  unresolved(await seen(address(), at(100)))
  unresolved(await seen('8.8.8.8', at(100)))
  unresolved(await seen('2001:4860:4860::8888', at(100)))
})

check('peers: a flow without a peer address stays unresolved', async () => {
  unresolved(await seen(null, at(100)))
})

check('peers: ingress and dropped flows are attributed like any other', async () => {
  const p = await pod()
  stamped(
    await seen(p.pod_ip, at(100), { traffic_type: 'INGRESS', pod_port: '8080', traffic_in_out_port: '0' }),
    'pod',
    p,
  )
  stamped(await seen(p.pod_ip, at(100), { decision: 'DROP', syn_retries: 4 }), 'pod', p)
  stamped(await seen(p.pod_ip, at(100), { ip_protocol: 'UDP' }), 'pod', p)
})

check('peers: every address of a dual-stack pod leads to it', async () => {
  const [v4, v6] = [address(), address6()]
  const p = await pod({ pod_ips: [v4, v6] })
  for (const ip of [p.pod_ip, v4, v6]) stamped(await seen(ip, at(100)), 'pod', p)
})

check('peers: addresses match in any spelling, and are stored in canonical form', async () => {
  const [six, four] = [await pod({ pod_ip: address6() }), await pod()]
  const row = await seen(six.pod_ip.toUpperCase().replace('::', ':0:0:0:0:0:0:'), at(100), { pod_ip: 'FD41:0::00AB' })
  stamped(row, 'pod', six)
  assert.equal(row.traffic_in_out_ip, six.pod_ip)
  assert.equal(row.pod_ip, 'fd41::ab')
  const mapped = await seen(`::ffff:${four.pod_ip}`, at(100))
  stamped(mapped, 'pod', four)
  assert.equal(mapped.traffic_in_out_ip, four.pod_ip)
})

check('peers: a pod that started after the flow is not its peer', async () => {
  const p = await pod({ started_at: at(100) })
  unresolved(await seen(p.pod_ip, at(99)))
  stamped(await seen(p.pod_ip, at(100)), 'pod', p)
  stamped(await seen(p.pod_ip, at(5000)), 'pod', p)
})

check('peers: a pod whose start is unknown is never a peer', async () => {
  const p = await pod({ started_at: undefined })
  unresolved(await seen(p.pod_ip, at(5000)))
})

check('peers: a dead pod is a peer up to its record time', async () => {
  const p = await pod({ started_at: at(100), time_stamp: at(200), is_dead: true })
  stamped(await seen(p.pod_ip, at(200)), 'pod', p)
  unresolved(await seen(p.pod_ip, at(201)))
})

check('peers: a recycled address goes to its holder at the time of the flow', async () => {
  const ip = address()
  const first = await pod({ pod_ip: ip, started_at: at(0), time_stamp: at(100), is_dead: true })
  const second = await pod({ pod_ip: ip, started_at: at(200), time_stamp: at(600) })
  stamped(await seen(ip, at(50)), 'pod', first)
  unresolved(await seen(ip, at(150)))
  stamped(await seen(ip, at(250)), 'pod', second)
})

check(
  'peers: a live pod wins over a dead one, then the later start, then the newer record, then the name',
  async () => {
    const ip = address()
    const dead = await pod({ pod_ip: ip, started_at: at(90), time_stamp: at(900), is_dead: true })
    stamped(await seen(ip, at(100)), 'pod', dead)
    const live = await pod({ pod_ip: ip, started_at: at(10), time_stamp: at(50) })
    stamped(await seen(ip, at(100)), 'pod', live)
    const later = await pod({ pod_ip: ip, started_at: at(20), time_stamp: at(40) })
    stamped(await seen(ip, at(100)), 'pod', later)
    const newer = await pod({ pod_ip: ip, started_at: at(20), time_stamp: at(45) })
    stamped(await seen(ip, at(100)), 'pod', newer)
    const named = await pod({ pod_name: `a-${name()}`, pod_ip: ip, started_at: at(20), time_stamp: at(45) })
    stamped(await seen(ip, at(100)), 'pod', named)
  },
)

check('peers: a host-network pod makes the peer a node, under the name of that pod', async () => {
  const sent = await pod({ host_network: true })
  const derived = await pod({ pod_obj: { metadata: { uid: 'uid-host' }, spec: { hostNetwork: true } } })
  const overruled = await pod({
    host_network: false,
    pod_obj: { metadata: { uid: 'uid-no' }, spec: { hostNetwork: true } },
  })
  stamped(await seen(sent.pod_ip, at(100)), 'node', sent)
  stamped(await seen(derived.pod_ip, at(100)), 'node', derived)
  stamped(await seen(overruled.pod_ip, at(100)), 'pod', overruled)
})

check('peers: an unknown host_network counts as pod', async () => {
  const p = await pod({ pod_obj: undefined })
  stamped(await seen(p.pod_ip, at(100)), 'pod', p)
})

check('peers: a pod without owner, uid or namespace leaves those fields null', async () => {
  const p = await pod({
    workload_kind: null,
    workload_name: null,
    pod_namespace: null,
    pod_obj: { metadata: { uid: '' } },
  })
  const row = await seen(p.pod_ip, at(100))
  assert.equal(row.peer_kind, 'pod')
  assert.equal(row.peer_name, p.pod_name)
  for (const k of ['peer_namespace', 'peer_uid', 'peer_workload_kind', 'peer_workload_name'])
    assert.equal(row[k], null, k)
})

check('peers: a service address makes the peer a service, at any time', async () => {
  const s = await service()
  stamped(await seen(s.svc_ip, at(100)), 'service', s)
  stamped(await seen(s.svc_ip, at(-3600)), 'service', s)
  const bare = await service({ service_spec: undefined })
  stamped(await seen(bare.svc_ip, at(100)), 'service', bare)
})

check('peers: a pod wins over a service, unless the guard leaves it out', async () => {
  const ip = address()
  const s = await service({ svc_ip: ip })
  const p = await pod({ pod_ip: ip, started_at: at(100) })
  stamped(await seen(ip, at(100)), 'pod', p)
  stamped(await seen(ip, at(99)), 'service', s)
})

check('peers: what the client sends in the seven fields is overwritten', async () => {
  const forged = {
    peer_kind: 'external',
    peer_namespace: 'forged',
    peer_name: 'forged',
    peer_uid: 'forged',
    peer_workload_kind: 'forged',
    peer_workload_name: 'forged',
    peer_resolved_at: at(0),
  }
  const p = await pod()
  stamped(await seen(p.pod_ip, at(100), forged), 'pod', p)
  unresolved(await seen(address(), at(100), forged))
  unresolved((await b.post('/pod/traffic', flow(address(), at(100), { ...forged, peer_kind: 'pod' }))).json)
})

check('peers: rows of one batch with one address are judged each by its own time', async () => {
  const ip = address()
  const first = await pod({ pod_ip: ip, started_at: at(0), time_stamp: at(100), is_dead: true })
  const second = await pod({ pod_ip: ip, started_at: at(200) })
  const flows = [at(50), at(150), at(250)].map((t) => flow(ip, t))
  await ingest(flows)
  stamped(await stored(flows[0]), 'pod', first)
  unresolved(await stored(flows[1]))
  stamped(await stored(flows[2]), 'pod', second)
})

check('peers: a stamped row keeps its peer when the pod moves on', async () => {
  const p = await pod()
  const f = flow(p.pod_ip, at(100))
  await ingest([f])
  const first = await stored(f)
  await pod({ ...p, pod_ip: address(), workload_name: 'renamed' })
  await pod({ pod_ip: p.pod_ip, started_at: at(50) })
  assert.deepEqual(await stored(f), first)
})

check('peers: a look-up at the time of the flow names the same pod', async () => {
  const p = await pod({ started_at: at(100) })
  const row = await seen(p.pod_ip, at(120, '123456'))
  assert.equal((await b.get(`/pod/ip/${row.traffic_in_out_ip}?at=${row.time_stamp}`)).json.pod_name, row.peer_name)
  const none = await seen(p.pod_ip, at(50))
  assert.equal((await b.get(`/pod/ip/${none.traffic_in_out_ip}?at=${none.time_stamp}`)).status, 404)
})

// ---- the late pass: one scene, set up once, looked at after two full passes

let scene
const lateScene = () =>
  (scene ??= (async () => {
    const s = {}
    const ips = Array.from({ length: 8 }, address)
    const send = async (key, ip, time, over) => {
      s[key] = flow(ip, time, over)
      await ingest([s[key]], late)
      unresolved(await stored(s[key], late))
    }
    await send('pod', ips[0], ago(60))
    await send('forged', ips[0], ago(60), { peer_kind: 'external', peer_name: 'forged', peer_resolved_at: at(0) })
    await send('service', ips[1], ago(60))
    await send('node', ips[2], ago(60))
    await send('startedLater', ips[3], ago(60))
    await send('unknownStart', ips[4], ago(60))
    await send('old', ips[5], ago(1200))
    await send('never', ips[6], ago(60))
    s.settledPod = await pod({ started_at: ago(3600), time_stamp: ago(0) }, late)
    s.settled = flow(s.settledPod.pod_ip, ago(60))
    await ingest([s.settled], late)
    s.settledRow = await stored(s.settled, late)
    await pod({ ...s.settledPod, pod_ip: address() }, late)
    await pod({ pod_ip: s.settledPod.pod_ip, started_at: ago(1800), time_stamp: ago(0) }, late)
    s.podPeer = await pod({ pod_ip: ips[0], started_at: ago(3600), time_stamp: ago(0) }, late)
    s.servicePeer = await service({ svc_ip: ips[1] }, late)
    s.nodePeer = await pod({ pod_ip: ips[2], host_network: true, started_at: ago(3600), time_stamp: ago(0) }, late)
    await pod({ pod_ip: ips[3], started_at: ago(30), time_stamp: ago(0) }, late)
    await pod({ pod_ip: ips[4], started_at: undefined, time_stamp: ago(0) }, late)
    await pod({ pod_ip: ips[5], started_at: ago(3600), time_stamp: ago(0) }, late)
    // Two rounds: when the second row is stamped, a whole pass has gone over everything above.
    for (const round of [1, 2]) {
      const ip = address()
      const f = flow(ip, ago(1))
      await ingest([f], late)
      await pod({ pod_ip: ip, started_at: ago(3600), time_stamp: ago(0) }, late)
      await eventually(async () => (await stored(f, late)).peer_kind, { timeoutMs: 25_000, what: `late pass ${round}` })
    }
    return s
  })())

check('peers: the late pass stamps a young row once its pod arrives', async () => {
  const s = await lateScene()
  stamped(await stored(s.pod, late), 'pod', s.podPeer)
  stamped(await stored(s.forged, late), 'pod', s.podPeer)
  stamped(await stored(s.node, late), 'node', s.nodePeer)
})

check('peers: the late pass stamps a young row once its service arrives', async () => {
  const s = await lateScene()
  stamped(await stored(s.service, late), 'service', s.servicePeer)
})

check('peers: the late pass keeps to the start-time guard', async () => {
  const s = await lateScene()
  unresolved(await stored(s.startedLater, late))
  unresolved(await stored(s.unknownStart, late))
})

check('peers: the late pass leaves rows older than its window, and rows nobody claims', async () => {
  const s = await lateScene()
  unresolved(await stored(s.old, late))
  unresolved(await stored(s.never, late))
})

check('peers: the late pass never changes a stamped row', async () => {
  const s = await lateScene()
  assert.deepEqual(await stored(s.settled, late), s.settledRow)
})
