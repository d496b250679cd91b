// Audit: what the evaluator is sent, which verdicts are kept, how they are read, and that the ingest never waits for it.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import { stubServer } from '../lib/stubs.mjs'

const cleanups = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup().catch(() => {})
})
const lazy = (make) => {
  let made
  return () => (made ??= make())
}

const VERDICT_KEYS = [
  'id',
  'policy_uid',
  'policy_namespace',
  'policy_name',
  'direction',
  'src_namespace',
  'src_pod',
  'dst_namespace',
  'dst_pod',
  'dst_port',
  'protocol',
  'reason',
  'observed_at',
  'verdict',
]

/** An evaluator whose answer depends on the pod that a flow names: `on(pod, answer)`; others get no results. */
async function evaluator() {
  const answers = new Map()
  const state = { inFlight: 0, most: 0 }
  const stub = await stubServer(async (req, body, url) => {
    if (req.method === 'GET' && url.pathname === '/policy-coverage') {
      const cause = answers.get(`coverage of ${url.searchParams.get('pod')}`)
      return cause ? { json: { cause } } : { status: 404, text: 'not found' }
    }
    if (req.method !== 'POST' || url.pathname !== '/evaluate') return { status: 404, text: 'not found' }
    const asked = JSON.parse(body)
    const answer = answers.get(asked.srcPodName ?? asked.dstPodName)
    state.inFlight += 1
    state.most = Math.max(state.most, state.inFlight)
    try {
      return answer === undefined
        ? { json: { results: [] } }
        : typeof answer === 'function'
          ? await answer(asked)
          : answer
    } finally {
      state.inFlight -= 1
    }
  })
  cleanups.push(stub.close)
  return {
    url: stub.url,
    state,
    seen: stub.seen,
    on: (pod, answer) => answers.set(pod, answer),
    /** The parsed bodies of the /evaluate calls for one pod. */
    calls: (pod) =>
      stub.seen
        .filter((s) => s.path === '/evaluate')
        .map((s) => JSON.parse(s.body))
        .filter((p) => (p.srcPodName ?? p.dstPodName) === pod),
  }
}
async function brokerFor(url, env) {
  const b = await startBroker({ env: { EVALUATOR_URL: url, ...env } })
  cleanups.push(() => b.stop())
  return b
}

// Two permits; the evaluator may take its time.
const main = lazy(async () => {
  const ev = await evaluator()
  return { ev, b: await brokerFor(ev.url, { AUDIT_INFLIGHT_PERMITS: '2', AUDIT_EVAL_TIMEOUT_MS: '30000' }) }
})
// A short deadline, for an evaluator that misbehaves.
const faulty = lazy(async () => {
  const ev = await evaluator()
  return { ev, b: await brokerFor(ev.url, { AUDIT_INFLIGHT_PERMITS: '2', AUDIT_EVAL_TIMEOUT_MS: '1000' }) }
})
// A queue of two behind one permit; the address ends in a slash.
const narrow = lazy(async () => {
  const ev = await evaluator()
  return {
    ev,
    b: await brokerFor(`${ev.url}/`, {
      AUDIT_INFLIGHT_PERMITS: '1',
      AUDIT_QUEUE_CAPACITY: '2',
      AUDIT_EVAL_TIMEOUT_MS: '30000',
    }),
  }
})

let nextPort = 20_000
const flow = (pod, over = {}) => ({
  uuid: randomUUID(),
  pod_name: pod,
  pod_namespace: 'shop',
  pod_ip: '10.20.0.1',
  pod_port: '0',
  ip_protocol: 'TCP',
  traffic_type: 'EGRESS',
  traffic_in_out_ip: '10.20.0.2',
  traffic_in_out_port: String(nextPort++),
  decision: 'ALLOW',
  time_stamp: '2025-04-01T08:00:00',
  ...over,
})
const result = (over = {}) => ({
  policyNamespace: 'shop',
  policyName: 'p',
  policyUID: 'u',
  direction: 'Egress',
  verdict: 'Allow',
  ...over,
})
const post = async (b, ...flows) => {
  const r = await b.post('/pod/traffic/batch', flows)
  assert.equal(r.status, 200, r.text)
  return r.json
}
const verdicts = async (b, query = {}) => {
  const r = await b.get(`/audit/verdicts?${new URLSearchParams(query)}`)
  assert.equal(r.status, 200, r.text)
  return r.json
}
const gauge = async (b, name) => {
  const line = (await b.get('/metrics')).text
    .split('\n')
    .find((l) => l.startsWith(`${name} `) || l.startsWith(`${name}{`))
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1))
}
/** Posts marker flows one after the other until the evaluator has answered them: what was queued before has been sent. */
async function settle({ ev, b }) {
  for (let i = 0; i < 3; i++) {
    const marker = `marker-${randomUUID()}`
    await post(b, flow(marker))
    await eventually(() => ev.calls(marker).length === 1, { what: 'the marker flow at the evaluator' })
  }
}

// ---- the request

check('audit: an ingress flow is sent with its pod as the destination', async () => {
  const { ev, b } = await main()
  await post(
    b,
    flow('in-1', {
      traffic_type: 'INGRESS',
      pod_ip: '10.20.1.1',
      pod_port: '8080',
      ip_protocol: 'TCP',
      traffic_in_out_ip: '10.20.1.2',
      traffic_in_out_port: '0',
      time_stamp: '2025-04-01T08:00:00.123456',
    }),
  )
  const [{ timestamp, ...rest }] = await eventually(() => ev.calls('in-1').length && ev.calls('in-1'), {
    what: 'the call',
  })
  assert.deepEqual(rest, {
    dstPodNamespace: 'shop',
    dstPodName: 'in-1',
    srcIP: '10.20.1.2',
    dstIP: '10.20.1.1',
    dstPort: 8080,
    protocol: 'TCP',
  })
  assert.match(timestamp, /^2025-04-01T08:00:00\.123456\d*\+00:00$/)
})

check('audit: an egress flow is sent with its pod as the source', async () => {
  const { ev, b } = await main()
  await post(
    b,
    flow('out-1', {
      pod_ip: '10.20.1.3',
      pod_port: '0',
      ip_protocol: 'UDP',
      traffic_in_out_ip: '10.20.1.4',
      traffic_in_out_port: '53',
      time_stamp: '2025-04-01T08:00:01',
    }),
  )
  const [{ timestamp, ...rest }] = await eventually(() => ev.calls('out-1').length && ev.calls('out-1'), {
    what: 'the call',
  })
  assert.deepEqual(rest, {
    srcPodNamespace: 'shop',
    srcPodName: 'out-1',
    srcIP: '10.20.1.3',
    dstIP: '10.20.1.4',
    dstPort: 53,
    protocol: 'UDP',
  })
  assert.equal(timestamp, '2025-04-01T08:00:01+00:00')
})

check('audit: the call is a POST of JSON to /evaluate', async () => {
  const { ev, b } = await main()
  await post(b, flow('shape-1'))
  await eventually(() => ev.calls('shape-1').length === 1, { what: 'the call' })
  const call = ev.seen.find((s) => s.body.includes('"shape-1"'))
  assert.equal(call.method, 'POST')
  assert.equal(call.path, '/evaluate')
  assert.match(call.headers['content-type'] ?? '', /^application\/json/)
})

check('audit: a slash at the end of EVALUATOR_URL is tolerated', async () => {
  const { ev, b } = await narrow()
  await post(b, flow('slash-1'))
  await eventually(() => ev.calls('slash-1').length === 1, { what: 'a call to /evaluate' })
})

check('audit: an absent namespace is left out, a bad port is 0, an absent protocol is TCP', async () => {
  const { ev, b } = await main()
  await post(b, flow('gaps-1', { pod_namespace: null, traffic_in_out_port: 'n/a', ip_protocol: null }))
  const [{ timestamp, ...rest }] = await eventually(() => ev.calls('gaps-1').length && ev.calls('gaps-1'), {
    what: 'the call',
  })
  assert.ok(timestamp)
  assert.deepEqual(rest, { srcPodName: 'gaps-1', srcIP: '10.20.0.1', dstIP: '10.20.0.2', dstPort: 0, protocol: 'TCP' })
})

check('audit: a flow of another traffic type is stored but not sent', async () => {
  const { ev, b } = await main()
  assert.equal(await post(b, flow('sideways-1', { traffic_type: 'FORWARD' })), 1)
  await settle({ ev, b })
  assert.equal(ev.calls('sideways-1').length, 0)
  assert.equal((await b.get('/pod/traffic/sideways-1')).json.length, 1)
})

check('audit: the single route forwards too', async () => {
  const { ev, b } = await main()
  assert.equal((await b.post('/pod/traffic', flow('single-1'))).status, 200)
  await eventually(() => ev.calls('single-1').length === 1, { what: 'the call' })
})

check('audit: only a genuinely new flow is sent', async () => {
  const { ev, b } = await main()
  const first = flow('once-1')
  const again = () => ({ ...first, uuid: randomUUID(), time_stamp: '2025-04-01T09:00:00' })
  assert.equal(await post(b, first, again()), 1)
  assert.equal(await post(b, again()), 0)
  assert.equal((await b.post('/pod/traffic', again())).json, null)
  await settle({ ev, b })
  assert.equal(ev.calls('once-1').length, 1)
})

// ---- the rows

check('audit: a verdict is stored with the flow it was given for', async () => {
  const { ev, b } = await main()
  ev.on('row-1', {
    json: {
      results: [
        result({
          policyNamespace: 'shop',
          policyName: 'row-deny',
          policyUID: 'uid-7',
          verdict: 'WouldDeny',
          reason: 'no rule matched',
        }),
      ],
    },
  })
  await post(b, flow('row-1', { traffic_in_out_port: '5432' }))
  const [row] = await eventually(
    async () => {
      const rows = await verdicts(b, { policy: 'row-deny' })
      return rows.length && rows
    },
    { what: 'the row' },
  )
  assert.deepEqual(Object.keys(row), VERDICT_KEYS)
  const { id, observed_at, ...rest } = row
  assert.ok(Number.isInteger(id))
  assert.match(observed_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?$/)
  assert.ok(Math.abs(Date.parse(`${observed_at}Z`) - Date.now()) < 60_000, 'observed_at is now, in UTC')
  assert.deepEqual(rest, {
    policy_uid: 'uid-7',
    policy_namespace: 'shop',
    policy_name: 'row-deny',
    direction: 'Egress',
    src_namespace: 'shop',
    src_pod: 'row-1',
    dst_namespace: null,
    dst_pod: null,
    dst_port: 5432,
    protocol: 'TCP',
    reason: 'no rule matched',
    verdict: 'WouldDeny',
  })
})

check('audit: an ingress verdict names the destination pod and no source pod', async () => {
  const { ev, b } = await main()
  ev.on('row-2', { json: { results: [result({ policyName: 'row-in', direction: 'Ingress' })] } })
  await post(
    b,
    flow('row-2', { traffic_type: 'INGRESS', pod_port: '9443', traffic_in_out_port: '0', ip_protocol: 'SCTP' }),
  )
  const [row] = await eventually(
    async () => {
      const rows = await verdicts(b, { policy: 'row-in' })
      return rows.length && rows
    },
    { what: 'the row' },
  )
  assert.deepEqual(
    {
      direction: row.direction,
      src_namespace: row.src_namespace,
      src_pod: row.src_pod,
      dst_namespace: row.dst_namespace,
      dst_pod: row.dst_pod,
      dst_port: row.dst_port,
      protocol: row.protocol,
    },
    {
      direction: 'Ingress',
      src_namespace: null,
      src_pod: null,
      dst_namespace: 'shop',
      dst_pod: 'row-2',
      dst_port: 9443,
      protocol: 'SCTP',
    },
  )
})

check('audit: one flow gives a row per policy and NotApplicable gives none', async () => {
  const { ev, b } = await main()
  ev.on('many-1', {
    json: {
      results: [
        result({ policyName: 'many-a', verdict: 'Allow' }),
        result({ policyName: 'many-b', verdict: 'NotApplicable' }),
        result({ policyName: 'many-c', verdict: 'WouldDeny', reason: 'r' }),
        result({ policyName: 'many-a', direction: 'Ingress', verdict: 'Allow' }),
      ],
    },
  })
  await post(b, flow('many-1'))
  const rows = await eventually(
    async () => {
      const all = (await verdicts(b, { limit: 500 })).filter((v) => v.policy_name.startsWith('many-'))
      return all.length >= 3 && all
    },
    { what: 'three rows' },
  )
  assert.deepEqual(rows.map((v) => `${v.policy_name} ${v.direction} ${v.verdict}`).sort(), [
    'many-a Egress Allow',
    'many-a Ingress Allow',
    'many-c Egress WouldDeny',
  ])
})

check('audit: the reason of an Allow is the empty string', async () => {
  const { ev, b } = await main()
  ev.on('allow-1', { json: { results: [result({ policyName: 'allow-1' })] } })
  await post(b, flow('allow-1'))
  const [row] = await eventually(
    async () => {
      const rows = await verdicts(b, { policy: 'allow-1' })
      return rows.length && rows
    },
    { what: 'the row' },
  )
  assert.equal(row.verdict, 'Allow')
  assert.equal(row.reason, '')
})

check('audit: an absent policy UID and a cluster-scoped policy are empty strings', async () => {
  const { ev, b } = await main()
  ev.on('bare-1', {
    json: { results: [{ policyNamespace: '', policyName: 'bare-1', direction: 'Egress', verdict: 'Allow' }] },
  })
  await post(b, flow('bare-1'))
  const [row] = await eventually(
    async () => {
      const rows = await verdicts(b, { policy: 'bare-1' })
      return rows.length && rows
    },
    { what: 'the row' },
  )
  assert.equal(row.policy_uid, '')
  assert.equal(row.policy_namespace, '')
})

// ---- the read

const filtered = lazy(async () => {
  const { ev, b } = await main()
  const make = (policyName, policyNamespace, direction, verdict) =>
    result({ policyName, policyNamespace, direction, verdict, reason: verdict === 'WouldDeny' ? 'r' : '' })
  ev.on('filter-1', {
    json: {
      results: [
        make('f-one', 'f-ns', 'Egress', 'Allow'),
        make('f-one', 'f-other', 'Ingress', 'WouldDeny'),
        make('f-two', 'f-ns', 'Ingress', 'WouldDeny'),
        make('f-cluster', '', 'Egress', 'WouldDeny'),
      ],
    },
  })
  await post(b, flow('filter-1'))
  const mine = (rows) =>
    rows
      .filter((v) => v.policy_name.startsWith('f-'))
      .map((v) => `${v.policy_name}/${v.policy_namespace}/${v.direction}/${v.verdict}`)
      .sort()
  await eventually(async () => mine(await verdicts(b, { limit: 500 })).length === 4, { what: 'four rows' })
  return { b, find: async (query) => mine(await verdicts(b, { limit: 500, ...query })) }
})
const F = {
  one: 'f-one/f-ns/Egress/Allow',
  other: 'f-one/f-other/Ingress/WouldDeny',
  two: 'f-two/f-ns/Ingress/WouldDeny',
  cluster: 'f-cluster//Egress/WouldDeny',
}

check('audit: each filter selects and filters combine with AND', async () => {
  const { find } = await filtered()
  assert.deepEqual(await find({ policy: 'f-one' }), [F.one, F.other].sort())
  assert.deepEqual(await find({ namespace: 'f-ns' }), [F.one, F.two].sort())
  assert.deepEqual(await find({ verdict: 'Allow' }), [F.one])
  assert.deepEqual(await find({ direction: 'Ingress' }), [F.other, F.two].sort())
  assert.deepEqual(await find({ policy: 'f-one', namespace: 'f-ns' }), [F.one])
  assert.deepEqual(await find({ namespace: 'f-ns', verdict: 'WouldDeny', direction: 'Ingress' }), [F.two])
  assert.deepEqual(await find({ policy: 'f-two', verdict: 'Allow' }), [])
})

check('audit: an empty namespace selects cluster-scoped policies, other empty filters select all', async () => {
  const { find } = await filtered()
  assert.deepEqual(await find({ namespace: '' }), [F.cluster])
  const everything = Object.values(F).sort()
  assert.deepEqual(await find({ policy: '' }), everything)
  assert.deepEqual(await find({ verdict: '' }), everything)
  assert.deepEqual(await find({ direction: '' }), everything)
})

check('audit: no match is an empty array', async () => {
  const { b } = await main()
  const r = await b.get('/audit/verdicts?policy=no-such-policy')
  assert.equal(r.status, 200)
  assert.equal(r.text, '[]')
})

check('audit: an unknown verdict or direction is 400 and names the field, the value and the choices', async () => {
  const { b } = await main()
  for (const [query, words] of [
    ['verdict=allow', ['verdict', 'allow', 'Allow', 'WouldDeny']],
    ['direction=Sideways', ['direction', 'Sideways', 'Ingress', 'Egress']],
  ]) {
    const r = await b.get(`/audit/verdicts?${query}`)
    assert.equal(r.status, 400, query)
    for (const word of words) assert.ok(r.text.includes(word), `${query}: "${word}" is not in: ${r.text}`)
  }
})

check('audit: limit defaults to 100, is clamped to 1..500, and must be a number', async () => {
  const { ev, b } = await main()
  ev.on('bulk-1', {
    json: { results: Array.from({ length: 120 }, (_, i) => result({ policyName: 'bulk', policyUID: `u${i}` })) },
  })
  for (let i = 0; i < 5; i++) await post(b, flow('bulk-1'))
  await eventually(async () => (await verdicts(b, { policy: 'bulk', limit: 500 })).length === 500, {
    what: 'more than 500 rows',
  })
  assert.equal((await verdicts(b, { policy: 'bulk' })).length, 100)
  assert.equal((await verdicts(b, { policy: 'bulk', limit: 7 })).length, 7)
  assert.equal((await verdicts(b, { policy: 'bulk', limit: 0 })).length, 1)
  assert.equal((await verdicts(b, { policy: 'bulk', limit: -3 })).length, 1)
  assert.equal((await verdicts(b, { policy: 'bulk', limit: 100_000 })).length, 500)
  assert.equal((await b.get('/audit/verdicts?limit=abc')).status, 400)
})

check('audit: rows come newest first, then by id', async () => {
  const { ev, b } = await main()
  ev.on('order-1', { json: { results: [1, 2, 3].map((i) => result({ policyName: 'order', policyUID: `u${i}` })) } })
  for (let i = 0; i < 4; i++) {
    await post(b, flow('order-1'))
    await eventually(async () => (await verdicts(b, { policy: 'order', limit: 500 })).length === 3 * (i + 1), {
      what: 'the rows of a flow',
    })
  }
  const rows = await verdicts(b, { policy: 'order', limit: 500 })
  const micros = (t) => {
    const [whole, part = ''] = t.split('.')
    return `${whole}.${part.padEnd(9, '0')}`
  }
  for (let i = 1; i < rows.length; i++) {
    const [a, c] = [micros(rows[i - 1].observed_at), micros(rows[i].observed_at)]
    assert.ok(a > c || (a === c && rows[i - 1].id > rows[i].id), `row ${i} is out of order`)
  }
})

// ---- flow control

check('audit: permits bound the calls in flight and the ingest does not wait for them', async () => {
  const { ev, b } = await main()
  await settle({ ev, b })
  await eventually(async () => (await gauge(b, 'broker_audit_inflight_available')) === 2, { what: 'both permits free' })
  ev.state.most = 0
  let release
  const gate = new Promise((ok) => {
    release = ok
  })
  ev.on('slow-1', async () => {
    await gate
    return { json: { results: [result({ policyName: 'slow' })] } }
  })
  try {
    assert.equal(await post(b, ...Array.from({ length: 8 }, () => flow('slow-1'))), 8)
    await eventually(() => ev.state.inFlight === 2, { what: 'two calls in flight' })
    await eventually(async () => (await gauge(b, 'broker_audit_inflight_available')) === 0, { what: 'no free permit' })
    assert.equal(await post(b, flow('slow-1')), 1)
    assert.equal(ev.calls('slow-1').length, 2)
  } finally {
    release()
  }
  await eventually(async () => (await verdicts(b, { policy: 'slow', limit: 500 })).length === 9, {
    what: 'nine verdicts',
  })
  assert.equal(ev.state.most, 2)
  await eventually(async () => (await gauge(b, 'broker_audit_inflight_available')) === 2, {
    what: 'both permits free again',
  })
})

check('audit: a full queue drops flows and counts them', async () => {
  const { ev, b } = await narrow()
  await eventually(async () => (await gauge(b, 'broker_audit_inflight_available')) === 1, { what: 'the permit free' })
  assert.equal(await gauge(b, 'broker_audit_dropped_total'), 0)
  let release
  const gate = new Promise((ok) => {
    release = ok
  })
  ev.on('flood-1', async () => {
    await gate
    return { json: { results: [result({ policyName: 'flood' })] } }
  })
  try {
    assert.equal(await post(b, ...Array.from({ length: 10 }, () => flow('flood-1'))), 10)
    // One in flight and two queued leave at least seven.
    await eventually(async () => (await gauge(b, 'broker_audit_dropped_total')) >= 7, { what: 'seven dropped flows' })
  } finally {
    release()
  }
  await eventually(
    async () => (await verdicts(b, { policy: 'flood' })).length + (await gauge(b, 'broker_audit_dropped_total')) === 10,
    {
      what: 'every flow either judged or counted as dropped',
    },
  )
  assert.ok((await verdicts(b, { policy: 'flood' })).length >= 1)
  assert.equal((await b.get('/pod/traffic/flood-1')).json.length, 10)
})

check('audit: broker_audit_enabled is 1 with an evaluator', async () => {
  const { b } = await main()
  assert.equal(await gauge(b, 'broker_audit_enabled'), 1)
})

// ---- an evaluator that fails

const FAULTS = {
  'an error status': { status: 500, text: 'boom' },
  'an unknown path': { status: 404, text: 'no' },
  'text instead of JSON': { text: 'not json' },
  'half a document': { text: '{"results": [' },
  'an empty body': { text: '' },
  'another JSON type': { json: 'results' },
  'no results key': { json: {} },
  'null results': { json: { results: null } },
  'a reset connection': 'reset',
  'no answer at all': 'hang',
}
for (const [what, answer] of Object.entries(FAULTS)) {
  check(`audit: ${what} from the evaluator loses nothing of the ingest`, async () => {
    const { ev, b } = await faulty()
    const pod = `fault-${what.replaceAll(' ', '-')}`
    ev.on(pod, answer)
    ev.on(`${pod}-good`, { json: { results: [result({ policyName: pod })] } })
    // Three of them: more than there are permits.
    assert.equal(await post(b, flow(pod), flow(pod), flow(pod)), 3)
    await eventually(() => ev.calls(pod).length === 3, { what: 'the three calls' })
    assert.equal(await post(b, flow(`${pod}-good`)), 1)
    await eventually(async () => (await verdicts(b, { policy: pod })).length === 1, {
      what: 'the verdict of the next flow',
    })
    assert.equal((await b.get(`/pod/traffic/${pod}`)).json.length, 3)
    await eventually(async () => (await gauge(b, 'broker_audit_inflight_available')) === 2, {
      what: 'both permits free again',
    })
    assert.equal((await b.get('/health')).status, 200)
  })
}

check('audit: an evaluator that is not there loses nothing of the ingest', async () => {
  const gone = await stubServer(() => ({}))
  await gone.close()
  const b = await brokerFor(gone.url, {})
  assert.equal(await post(b, flow('alone-1'), flow('alone-1')), 2)
  assert.equal((await b.post('/pod/traffic', flow('alone-1'))).status, 200)
  assert.equal((await b.get('/pod/traffic/alone-1')).json.length, 3)
  assert.deepEqual(await verdicts(b), [])
  await eventually(async () => (await gauge(b, 'broker_audit_inflight_available')) === 16, {
    what: 'all 16 default permits free',
  })
  assert.equal((await b.get('/health')).status, 200)
})

// ---- the cause of a drop

check('audit: a dropped flow gets the cause that the evaluator names', async () => {
  const { ev, b } = await main()
  ev.on('coverage of drop-1', 'policy-governs')
  await post(b, flow('drop-1', { decision: 'DROP' }), flow('drop-2', { decision: 'ALLOW' }))
  await eventually(async () => (await b.get('/pod/traffic/drop-1')).json[0].drop_cause === 'policy-governs', {
    what: 'the cause on the row',
  })
  const asked = ev.seen.find((s) => s.path === '/policy-coverage')
  assert.deepEqual(asked.query, { namespace: 'shop', pod: 'drop-1', direction: 'Egress' })
  await eventually(() => ev.calls('drop-1').length === 1, { what: 'the evaluation as well' })
  await eventually(() => ev.calls('drop-2').length === 1, { what: 'the evaluation of the allowed flow' })
  assert.ok(!ev.seen.some((s) => s.path === '/policy-coverage' && s.query.pod === 'drop-2'))
})
