import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AuditForwarder } from '../../lib/audit/index.ts'
import { startApp } from '../support/app.ts'
import { whileRefused } from '../support/routes.ts'
import { type Heard, type StubAnswer, startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'

type Env = Record<string, string>

let made = 0
const flow = (pod: string, fields: object = {}) => {
  made++
  const ports = { pod_port: '0', traffic_in_out_port: String(made) }
  const addresses = { pod_ip: '10.0.0.1', traffic_in_out_ip: '10.0.0.2' }
  const rest = {
    pod_namespace: 'shop',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    decision: 'ALLOW',
    time_stamp: '2024-05-01T10:00:00',
  }
  return { uuid: `audit-${made}`, pod_name: pod, ...addresses, ...ports, ...rest, ...fields }
}
const result = (fields: object = {}) => ({
  policyNamespace: 'shop',
  policyName: 'p',
  policyUID: 'u',
  direction: 'Egress',
  verdict: 'Allow',
  ...fields,
})
const verdict = (policyName: string) => ({ json: { results: [result({ policyName })] } })

/** A broker with an evaluator whose answers depend on the pod of the flow. */
async function scene(env: Env = {}) {
  const answers = new Map<string, (heard: Heard) => StubAnswer | Promise<StubAnswer>>()
  const stub = await startStub((heard) => {
    if (heard.path.endsWith('/policy-coverage'))
      return answers.get(`cause of ${heard.query.pod}`)?.(heard) ?? { status: 404, text: 'no' }
    const asked = JSON.parse(heard.body)
    return answers.get(asked.srcPodName ?? asked.dstPodName)?.(heard) ?? { json: { results: [] } }
  })
  const app = await startApp({ EVALUATOR_URL: stub.url, AUDIT_EVAL_TIMEOUT_MS: '20000', ...env })
  const audit = app.deps.audit!
  return {
    app,
    audit,
    stub,
    on: (pod: string, answer: StubAnswer) => answers.set(pod, () => answer),
    /** Holds back the answers for this pod; the returned function releases them. */
    hold: (pod: string, answer: StubAnswer) => {
      let release = () => {}
      const gate = new Promise<void>((resolve) => {
        release = resolve
      })
      answers.set(pod, () => gate.then(() => answer))
      return release
    },
    calls: (pod: string) => stub.heard.filter(({ path, body }) => path === '/evaluate' && body.includes(`"${pod}"`)),
    async post(...flows: object[]): Promise<number> {
      const { status, text, json } = await app.post('/pod/traffic/batch', flows)
      assert.equal(status, 200, text)
      return json as number
    },
    /** Waits until nothing is queued or in flight. */
    idle: () =>
      until(
        'the forwarder is idle',
        () => audit.waiting === 0 && audit.availablePermits === app.deps.config.auditInflightPermits,
      ),
    verdicts: async (policy: string) =>
      (await app.sql`select * from audit_verdict where policy_name = ${policy} order by id`) as Record<
        string,
        unknown
      >[],
    metric: async (name: string) => {
      const { text } = await app.get('/metrics')
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${name} `))
          ?.split(' ')[1],
      )
    },
  }
}

const main = await scene()

test('a new flow is evaluated once on either route; a repeat is not evaluated', async () => {
  const first = flow('once')
  const again = () => ({ ...first, uuid: `${first.uuid}-${++made}` })
  assert.equal(await main.post(first, again(), again()), 1)
  assert.equal(await main.post(again()), 0)
  assert.equal((await main.app.post('/pod/traffic', again())).text, 'null')
  await main.app.post('/pod/traffic', flow('single'))
  await until('both are evaluated', () => main.calls('single').length === 1)
  await main.idle()
  assert.equal(main.calls('once').length, 1)
  const [{ method, path, headers, body }] = main.calls('once') as [Heard]
  assert.deepEqual([method, path, headers['content-type']], ['POST', '/evaluate', 'application/json'])
  assert.deepEqual(JSON.parse(body), {
    srcPodNamespace: 'shop',
    srcPodName: 'once',
    srcIP: '10.0.0.1',
    dstIP: '10.0.0.2',
    dstPort: Number(first.traffic_in_out_port),
    protocol: 'TCP',
    timestamp: '2024-05-01T10:00:00+00:00',
  })
})

test('of two flows with one uuid in a body, the stored one is evaluated', async () => {
  const kept = flow('uuid-kept')
  assert.equal(await main.post(kept, flow('uuid-lost', { uuid: kept.uuid })), 1)
  await until('it is evaluated', () => main.calls('uuid-kept').length === 1)
  await main.idle()
  assert.equal(main.calls('uuid-lost').length, 0)
})

test('a flow without a valid direction is stored and not evaluated', async () => {
  assert.equal(await main.post(flow('sideways', { traffic_type: 'FORWARD' })), 1)
  await main.post(flow('sideways-after'))
  await until('the next is evaluated', () => main.calls('sideways-after').length === 1)
  assert.equal(main.calls('sideways').length, 0)
})

test('verdicts are stored with the fields of the flow, one row a policy, all with one time', async () => {
  const results = [
    result({ policyName: 'rows-a', verdict: 'WouldDeny', reason: 'why' }),
    result({ policyName: 'rows-b', policyUID: undefined }),
  ]
  main.on('rows', { json: { results: [...results, result({ policyName: 'rows-c', verdict: 'NotApplicable' })] } })
  await main.post(flow('rows', { traffic_type: 'INGRESS', pod_port: '9443', ip_protocol: 'SCTP' }))
  const [a] = await until('the rows are stored', async () => {
    const rows = await main.verdicts('rows-a')
    return rows.length > 0 && rows
  })
  const [b] = await main.verdicts('rows-b')
  const { id, observed_at, ...rest } = a!
  assert.deepEqual(rest, {
    policy_uid: 'u',
    policy_namespace: 'shop',
    policy_name: 'rows-a',
    direction: 'Egress',
    src_namespace: null,
    src_pod: null,
    dst_namespace: 'shop',
    dst_pod: 'rows',
    dst_port: '9443',
    protocol: 'SCTP',
    reason: 'why',
    verdict: 'WouldDeny',
  })
  assert.equal(b!.policy_uid, '')
  assert.equal(String(b!.observed_at), String(observed_at))
  assert.ok(Number(b!.id) > Number(id))
  assert.equal((await main.verdicts('rows-c')).length, 0)
})

test('permits bound the evaluations in flight, and ingest does not wait for them', async () => {
  const few = await scene({ AUDIT_INFLIGHT_PERMITS: '2' })
  const release = few.hold('slow', verdict('slow'))
  assert.equal(await few.post(...Array.from({ length: 8 }, () => flow('slow'))), 8)
  await until('two are in flight', () => few.calls('slow').length === 2)
  assert.equal(await few.metric('broker_audit_inflight_available'), 0)
  assert.equal(await few.metric('broker_audit_queue_length'), 6)
  assert.equal(await few.post(flow('slow')), 1)
  assert.equal(few.calls('slow').length, 2)
  release()
  await until('all are judged', async () => (await few.verdicts('slow')).length === 9)
  await few.idle()
  assert.equal(await few.metric('broker_audit_inflight_available'), 2)
  assert.equal(await few.metric('broker_audit_dropped_total'), 0)
  assert.equal(await few.metric('broker_audit_verdicts_total'), 9)
  // Two concurrent evaluations need two connections; no further ones are opened.
  assert.ok(few.stub.connections <= 2, `${few.stub.connections} connections`)
})

test('flows that arrive at a full queue are dropped from evaluation and counted, and still stored', async () => {
  const narrow = await scene({ AUDIT_INFLIGHT_PERMITS: '1', AUDIT_QUEUE_CAPACITY: '2' })
  const release = narrow.hold('flood', verdict('flood'))
  assert.equal(await narrow.post(...Array.from({ length: 10 }, () => flow('flood'))), 10)
  assert.equal(await narrow.metric('broker_audit_dropped_total'), 7)
  release()
  await until('the others are judged', async () => (await narrow.verdicts('flood')).length === 3)
  assert.equal((await narrow.app.get('/pod/traffic/flood')).json.length, 10)
})

test('a path and a trailing slash in the address of the evaluator are kept', async () => {
  const slash = await scene()
  const nested = await startApp({ EVALUATOR_URL: `${slash.stub.url}/v2/` })
  await nested.post('/pod/traffic', flow('nested'))
  await until('it is asked', () => slash.stub.heard.some(({ path }) => path === '/v2/evaluate'))
})

const faults: [what: string, answer: StubAnswer, outcome: string][] = [
  ['an error status', { status: 500, text: 'boom' }, 'refused'],
  [
    'another status with verdicts',
    { status: 302, json: { results: [result()] }, headers: { location: '/evaluate' } },
    'refused',
  ],
  ['text that is not JSON', { text: 'nonsense' }, 'refused'],
  ['an empty answer', { text: '' }, 'refused'],
  ['an answer above a mebibyte', { text: ' '.repeat(1024 * 1024 + 1) }, 'unreachable'],
  ['a cut answer', 'cut', 'unreachable'],
  ['a cut connection', 'reset', 'unreachable'],
  ['silence', 'hang', 'unreachable'],
]
const answering = await scene({ AUDIT_INFLIGHT_PERMITS: '2' })
const hasty = await scene({ AUDIT_INFLIGHT_PERMITS: '2', AUDIT_EVAL_TIMEOUT_MS: '300' })
for (const [what, answer, outcome] of faults) {
  test(`${what} from the evaluator costs a flow its verdict, and nothing else`, async () => {
    const isSilent = answer === 'hang'
    const faulty = isSilent ? hasty : answering
    const pod = `fault-${what.replaceAll(' ', '-')}`
    faulty.on(pod, answer)
    faulty.on(`${pod}-good`, verdict(pod))
    const name = `broker_audit_flows_total{outcome="${outcome}"}`
    const before = (await faulty.metric(name)) || 0
    assert.equal(await faulty.post(flow(pod), flow(pod), flow(pod)), 3)
    await until('all were asked about', () => faulty.calls(pod).length === 3)
    await until('the next is judged', async () => {
      await faulty.post(flow(`${pod}-good`))
      await faulty.idle()
      return (await faulty.verdicts(pod)).length > 0
    })
    // On a busy machine an answer may arrive after its timeout.
    const lost = (await faulty.metric(name)) - before
    assert.ok(isSilent ? lost >= 3 : lost === 3, `${lost} were lost`)
    assert.equal(faulty.calls(pod).length, 3, 'nothing is asked twice')
    assert.equal((await faulty.app.get(`/pod/traffic/${pod}`)).json.length, 3)
  })
}

test('an evaluator that fails every flow is logged at a limited rate, without its answers', async () => {
  const loud = await scene()
  loud.on('loud', { status: 500, text: 'secret' })
  await loud.post(...Array.from({ length: 50 }, () => flow('loud')))
  await until('all were asked about', () => loud.calls('loud').length === 50)
  await loud.idle()
  const warnings = loud.app.logged.filter(({ level, msg }) =>
    level === 40 || level === 'warn' ? String(msg).includes('evaluator') : false,
  )
  assert.equal(warnings.length, 1)
  assert.ok(!JSON.stringify(loud.app.logged).includes('secret'))
})

test('an unreachable evaluator does not affect ingest', async () => {
  const gone = await startStub(() => 'hang')
  await gone.close()
  const app = await startApp({ EVALUATOR_URL: gone.url })
  assert.equal((await app.post('/pod/traffic/batch', [flow('gone'), flow('gone')])).json, 2)
  await until('the permits are back', () => app.deps.audit!.availablePermits === 16)
  assert.equal((await app.get('/pod/traffic/gone')).json.length, 2)
})

test('verdicts that cannot be stored are lost with a warning, and the flow is not evaluated again', async () => {
  const busy = await scene()
  busy.on('lost', verdict('lost'))
  await whileRefused(busy.app.sql, 'audit_verdict', async () => {
    await busy.post(flow('lost'))
    await until('it is given up', () =>
      busy.app.logged.some(({ msg }) => String(msg).startsWith('verdicts could not be stored')),
    )
  })
  await busy.idle()
  assert.equal(busy.calls('lost').length, 1)
  assert.equal((await busy.verdicts('lost')).length, 0)
})

test('one verdict that cannot be stored does not affect the others of the reply', async () => {
  main.on('neighbour', verdict('neighbour'))
  main.on('odd', {
    json: { results: [result({ policyName: 'odd', reason: 'a\0b' }), result({ policyName: 'x'.repeat(300) })] },
  })
  await main.post(flow('neighbour'), flow('odd'), flow('neighbour'))
  await until('the neighbours are stored', async () => (await main.verdicts('neighbour')).length === 2)
})

// ---- The cause of a drop --------------------------------------------------------------------------------------------

const causeOf = async (pod: string) => (await main.app.get(`/pod/traffic/${pod}`)).json[0].drop_cause

test('a dropped flow gets the cause that the evaluator names, before it is evaluated', async () => {
  for (const cause of ['no-policy', 'policy-governs', 'unknown']) {
    const pod = `drop-${cause}`
    main.on(`cause of ${pod}`, { json: { cause } })
    await main.post(flow(pod, { decision: 'DROP', syn_retries: 4 }))
    await until('the cause is stored', async () => (await causeOf(pod)) === cause)
    await until('it is evaluated', () => main.calls(pod).length === 1)
    const asked = main.stub.heard.findIndex(({ query }) => query.pod === pod)
    const evaluated = main.stub.heard.findIndex(({ path, body }) => path === '/evaluate' && body.includes(`"${pod}"`))
    assert.deepEqual(main.stub.heard[asked]!.query, { namespace: 'shop', pod, direction: 'Egress' })
    assert.ok(asked < evaluated)
  }
})

test('a dropped ingress flow gets a cause by its own direction, and is evaluated', async () => {
  main.on('cause of drop-in', { json: { cause: 'policy-governs' } })
  await main.post(flow('drop-in', { decision: 'DROP', traffic_type: 'INGRESS' }))
  await until('it is evaluated', () => main.calls('drop-in').length === 1)
  await main.idle()
  assert.equal(await causeOf('drop-in'), 'policy-governs')
  const { query } = main.stub.heard.find((heard) => heard.query.pod === 'drop-in')!
  assert.deepEqual(query, { namespace: 'shop', pod: 'drop-in', direction: 'Ingress' })
})

test('a drop without a valid direction gets its cause as egress, and is not evaluated', async () => {
  for (const [pod, traffic_type] of [
    ['drop-sideways', 'FORWARD'],
    ['drop-nowhere', null],
  ] as const) {
    main.on(`cause of ${pod}`, { json: { cause: 'no-policy' } })
    await main.post(flow(pod, { decision: 'DROP', traffic_type }))
    await until('the cause is stored', async () => (await causeOf(pod)) === 'no-policy')
    await main.idle()
    const { query } = main.stub.heard.find((heard) => heard.query.pod === pod)!
    assert.deepEqual(query, { namespace: 'shop', pod, direction: 'Egress' })
    assert.equal(main.calls(pod).length, 0)
  }
})

for (const [what, answer] of [
  ['an evaluator that knows no such question', { status: 404, text: 'no' }],
  ['a cause unknown here', { json: { cause: 'weather' } }],
  ['text', { text: 'nonsense' }],
  ['an error', { status: 500, json: { cause: 'no-policy' } }],
  ['a cut connection', 'reset'],
] as [string, StubAnswer][]) {
  test(`${what} leaves the cause of a drop open, and the flow is evaluated`, async () => {
    const pod = `open-${what.replaceAll(' ', '-')}`
    main.on(`cause of ${pod}`, answer)
    await main.post(flow(pod, { decision: 'DROP' }))
    await until('it is evaluated', () => main.calls(pod).length === 1)
    await main.idle()
    assert.equal(await causeOf(pod), null)
  })
}

test('no cause is requested for flows that were let through', async () => {
  await main.post(flow('allowed'))
  await until('it is evaluated', () => main.calls('allowed').length === 1)
  assert.ok(!main.stub.heard.some(({ query }) => query.pod === 'allowed'))
})

// ---- Shutdown -------------------------------------------------------------------------------------------------------

test('draining evaluates what is queued', async () => {
  const ending = await scene({ AUDIT_INFLIGHT_PERMITS: '1' })
  ending.on('last', verdict('last'))
  await ending.post(...Array.from({ length: 20 }, () => flow('last')))
  await ending.audit.drain(20_000)
  assert.equal((await ending.verdicts('last')).length, 20)
  assert.equal(await ending.metric('broker_audit_dropped_total'), 0)
  ending.audit.offer(flow('late') as never)
  assert.equal(await ending.metric('broker_audit_dropped_total'), 1)
  assert.equal(ending.calls('late').length, 0)
})

test('draining ends within its time limit, and counts the rest as dropped', async () => {
  const ending = await scene({ AUDIT_INFLIGHT_PERMITS: '1' })
  const release = ending.hold('stuck', verdict('stuck'))
  await ending.post(...Array.from({ length: 5 }, () => flow('stuck')))
  await ending.audit.drain(50)
  release()
  assert.equal(await ending.metric('broker_audit_dropped_total'), 4)
  assert.equal(ending.audit.waiting, 0)
})

test('draining an idle forwarder returns at once', async () => {
  const { deps } = await startApp({ EVALUATOR_URL: main.stub.url })
  assert.ok(deps.audit instanceof AuditForwarder)
  await deps.audit.drain(60_000)
})

test('without an evaluator there is no forwarder, and the gauges say so', async () => {
  const { deps, get } = await startApp()
  assert.equal(deps.audit, null)
  const { text } = await get('/metrics')
  assert.match(text, /^broker_audit_enabled 0$/m)
  assert.match(text, /^broker_audit_inflight_available 16$/m)
  assert.match((await main.app.get('/metrics')).text, /^broker_audit_enabled 1$/m)
})
