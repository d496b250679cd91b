/** The dimension `network` of a profile, from what agents posted. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isExternalAddress } from '../../lib/profile/network/address.ts'
import {
  judgeNetwork,
  listed,
  networkSnapshot,
  readAudit,
  readEdges,
  readExamples,
} from '../../lib/profile/network/index.ts'
import { Network } from '../../lib/profile/record/network.ts'
import { startApp } from '../support/app.ts'
import { countEdges, daysAgo, flowOf, podOf, SHOP, seed, seedShop } from '../support/policy-cluster.ts'

const app = await startApp()
const { sql } = app
await seedShop(app)

async function read(workload: string) {
  const [namespace, kind, name] = workload.split('/') as [string, string, string]
  const key = { namespace, kind, name }
  const edges = await readEdges(app.db.read, key)
  const examples = await readExamples(app.db.read, listed(edges))
  const audit = await readAudit(app.db.read, key, 0)
  const { dimension, findings } = judgeNetwork({ edges, examples, audit, livePods: 1, areFlowsCounted: true })
  assert.deepEqual(Network.parse(dimension), dimension)
  return { ...dimension, findings, ...networkSnapshot(edges), codes: dimension.reasons.map(({ code }) => code) }
}
type Found = Awaited<ReturnType<typeof read>>
const peersOf = ({ peers }: Found) =>
  peers.map(({ direction, protocol, port, peer }) => {
    const { kind, namespace, workloadKind, workloadName, name, ip } = peer
    return `${direction} ${protocol}/${port} ${kind} ${namespace}/${workloadKind}/${workloadName} ${name} ${ip}`
  })
const rulesOf = ({ rules }: Found) =>
  rules.map(({ direction, peer, port, protocol }) => `${direction} ${peer} ${protocol}/${port}`)

const verdict = (fields: Record<string, unknown>) => ({
  ...{ policy_uid: 'uid', policy_namespace: 'shop', policy_name: 'audited', direction: 'Ingress' },
  ...{ src_namespace: 'shop', src_pod: 'web-1', dst_namespace: 'shop', dst_pod: 'api-1', dst_port: 8080 },
  ...{ protocol: 'TCP', reason: 'r', observed_at: new Date(), verdict: 'Allow' },
  ...fields,
})
const audited = (...rows: object[]) => sql`insert into audit_verdict ${sql(rows as never[])}`

test('peers by workload, service and address, ingress first, each with an example', async () => {
  const api = await read('shop/Deployment/api')
  assert.deepEqual(peersOf(api), [
    'ingress TCP/8080 pod shop/Deployment/web web-1 10.1.0.1',
    'ingress TCP/9090 pod monitoring/StatefulSet/prometheus prometheus-0 10.1.2.1',
    'egress TCP/443 external null/null/null null 93.184.216.34',
    'egress TCP/5432 service shop/null/null db 10.96.0.2',
  ])
  assert.deepEqual(api.summary, {
    egress: { peers: 2, external: 1, ports: ['TCP/443', 'TCP/5432'] },
    ingress: { peers: 2, external: 0, ports: ['TCP/8080', 'TCP/9090'] },
  })
  assert.deepEqual(rulesOf(api), [
    'egress external:93.184.216.34 TCP/443',
    'egress service:shop/db TCP/5432',
    'ingress pod:monitoring/StatefulSet/prometheus TCP/9090',
    'ingress pod:shop/Deployment/web TCP/8080',
  ])
  assert.deepEqual([api.status, api.codes, api.findings], ['unknown', ['policy_state_unknown'], []])
  assert.equal(api.coverage.observedSince, `${daysAgo(10)}Z`)
  assert.equal(api.coverage.level, 'full')
})

test('nodes are peers by address but one rule, and dropped flows count, too', async () => {
  const node3 = podOf({
    namespace: 'kube-system',
    name: 'proxy-3',
    ip: '192.168.0.3',
    node: 'node-3',
    hostNetwork: true,
  })
  await seed(app, [node3], [], [flowOf(SHOP.web, 'INGRESS', '192.168.0.3', '3000')])
  const web = await read('shop/Deployment/web')
  assert.deepEqual(peersOf(web), [
    'ingress TCP/3000 node null/null/null null 192.168.0.2',
    'ingress TCP/3000 node null/null/null null 192.168.0.3',
    'egress TCP/80 service shop/null/null api 10.96.0.1',
    'egress TCP/5432 pod shop/StatefulSet/db db-0 10.1.0.3',
    'egress UDP/53 service kube-system/null/null kube-dns 10.96.0.10',
  ])
  assert.equal(web.summary.ingress.peers, 2)
  assert.equal(rulesOf(web).filter((rule) => rule.includes('node')).length, 1)
})

test('several pods are one workload, and flows from before its workload was known are its own', async () => {
  const unowned = { more: { workload_kind: null, workload_name: null, pod_obj: null } }
  const late = podOf({ namespace: 'late', name: 'late-1', ip: '10.3.0.1', ...unowned })
  const twin = podOf({ namespace: 'late', name: 'late-2', ip: '10.3.0.2', workload: 'Deployment/late' })
  const other = podOf({ namespace: 'other', name: 'late-3', ip: '10.3.0.3', workload: 'Deployment/late' })
  await seed(
    app,
    [late, twin, other],
    [],
    [
      flowOf(late, 'EGRESS', '93.184.216.34', '443'),
      flowOf(twin, 'EGRESS', '93.184.216.34', '443'),
      flowOf(twin, 'EGRESS', '10.3.0.1', '80'),
      flowOf(other, 'EGRESS', '93.184.216.34', '8443'),
    ],
  )
  assert.deepEqual(
    (await read('late/Deployment/late')).peers.map(({ port, flows }) => [port, flows]),
    [
      [80, 1],
      [443, 1],
    ],
  )
  await seed(app, [{ ...late, workload_kind: 'Deployment', workload_name: 'late' }], [], [])
  const found = await read('late/Deployment/late')
  assert.deepEqual(
    found.peers.map(({ port, flows }) => [port, flows]),
    [
      [80, 1],
      [443, 2],
    ],
  )
  assert.equal(peersOf(found)[0], 'egress TCP/80 pod late/Deployment/late late-1 10.3.0.1', 'of the peer, too')
})

test('the example of a peer is its newest living pod', async () => {
  const caller = podOf({ namespace: 'example', name: 'caller-1', ip: '10.2.0.1', workload: 'Deployment/caller' })
  const callee = (n: number, more = {}) =>
    podOf({ namespace: 'example', name: `callee-${n}`, ip: `10.2.1.${n}`, workload: 'Deployment/callee', more })
  const sent = flowOf(caller, 'EGRESS', '10.2.1.1', '80')
  await seed(
    app,
    [caller, callee(1, { time_stamp: daysAgo(3) }), callee(2, { time_stamp: daysAgo(2) }), callee(3)],
    [],
    [sent],
  )
  await sql`update pod set is_dead = true where pod_name = 'callee-3'`
  assert.deepEqual(peersOf(await read('example/Deployment/caller')), [
    'egress TCP/80 pod example/Deployment/callee callee-2 10.2.1.2',
  ])
})

test('a flow whose peer may still become known is seen at once', async () => {
  const pod = podOf({ namespace: 'fresh', name: 'fresh-1', ip: '10.4.0.1', workload: 'Deployment/fresh' })
  await seed(
    app,
    [pod],
    [],
    [flowOf(pod, 'EGRESS', '10.9.9.9', '80', { time_stamp: new Date().toISOString().slice(0, -1) })],
  )
  const found = await read('fresh/Deployment/fresh')
  assert.deepEqual(peersOf(found), ['egress TCP/80 unresolved null/null/null null 10.9.9.9'])
  assert.deepEqual(rulesOf(found), ['egress unresolved:10.9.9.9 TCP/80'])
})

test('a pod without a workload is a workload of the kind Pod', async () => {
  const bare = podOf({ namespace: 'bare', name: 'bare-1', ip: '10.5.0.1' })
  await seed(app, [bare], [], [flowOf(bare, 'EGRESS', '10.1.0.2', '80')])
  assert.deepEqual(peersOf(await read('bare/Pod/bare-1')), ['egress TCP/80 pod shop/Deployment/api api-1 10.1.0.2'])
  assert.deepEqual((await read('shop/Pod/bare-1')).codes, ['no_flows'])
})

test('without a flow nothing is known', async () => {
  const none = await read('shop/Deployment/nobody')
  assert.deepEqual([none.status, none.codes, none.peers, none.rules], ['unknown', ['no_flows'], [], []])
  assert.deepEqual([none.coverage.level, none.coverage.observedSince], ['none', null])
})

test('ports that are none are null, and more than 200 peers are cut, of 2 000 rules the first', async () => {
  await sql`
    insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, traffic_in_out_ip,
                           is_public, port, ip_protocol, decision, flows, pods, first_seen_at, last_new_at, counted_at)
    select gen_random_uuid(), 'EGRESS', 'many', 'Deployment', 'many', '8.8.' || n / 256 || '.' || n % 256, true,
           (array['443', 'none', '65536', null])[n % 4 + 1], '', 'ALLOW', 1, 1, now(), now(), now()
    from generate_series(0, 2000) n`
  const many = await read('many/Deployment/many')
  assert.deepEqual([many.peers.length, many.truncated, many.rules.length], [200, true, 2_000])
  assert.deepEqual([many.coverage.level, many.codes], ['partial', ['policy_state_unknown', 'truncated']])
  assert.deepEqual(new Set(many.rules.map(({ port }) => port)), new Set([443, null]))
  assert.deepEqual(many.summary.egress.ports, ['TCP/443'], 'a blank protocol is TCP')
  assert.equal(many.summary.egress.peers, 200)
})

test('an audited policy makes it known: ok while it would deny nothing, else a warning', async () => {
  const day = 24 * 3_600_000
  await audited(
    verdict({}),
    verdict({ policy_namespace: '', policy_name: 'of-cluster' }),
    verdict({ verdict: 'WouldDeny', observed_at: new Date(Date.now() - day - 60_000) }),
    verdict({ verdict: 'WouldDeny', src_pod: 'other', dst_pod: 'another' }),
    verdict({ verdict: 'WouldDeny', src_namespace: 'else', dst_namespace: 'else' }),
  )
  for (const workload of ['shop/Deployment/api', 'shop/Deployment/web']) {
    const { status, policy, codes } = await read(workload)
    assert.deepEqual([status, codes], ['ok', ['audit_clean']], workload)
    assert.deepEqual(policy.audit?.policies, [
      { namespace: '', name: 'of-cluster' },
      { namespace: 'shop', name: 'audited' },
    ])
    assert.deepEqual([policy.audit?.allow, policy.audit?.wouldDeny, policy.enforced], [2, 0, null])
  }
  // Between two pods of one workload it counts once.
  const twin = podOf({ namespace: 'shop', name: 'api-2', ip: '10.1.0.9', workload: 'Deployment/api' })
  await seed(app, [twin], [], [])
  await audited(verdict({ verdict: 'WouldDeny', src_pod: 'api-2' }))
  const { status, policy, codes, findings } = await read('shop/Deployment/api')
  assert.deepEqual([status, codes, policy.audit?.wouldDeny], ['warn', ['would_deny'], 1])
  assert.deepEqual(
    findings.map(({ id, severity, tier, container }) => [id, severity, tier, container]),
    [['network.wouldDeny', 'medium', 'P2', null]],
  )
  const unseen = podOf({ namespace: 'shop', name: 'quiet-1', ip: '10.1.0.8', workload: 'Deployment/quiet' })
  await seed(app, [unseen], [], [])
  await audited(verdict({ src_pod: 'quiet-1' }))
  assert.deepEqual(
    (await read('shop/Deployment/quiet')).codes,
    ['no_flows'],
    'without flows it is unknown all the same',
  )
})

test('flows that are not counted yet appear with the next count', async () => {
  const pod = podOf({ namespace: 'later', name: 'later-1', ip: '10.6.0.1', workload: 'Deployment/later' })
  await app.post('/pod/spec', pod)
  await app.post('/pod/traffic/batch', [flowOf(pod, 'EGRESS', '10.1.0.2', '80')])
  assert.deepEqual((await read('later/Deployment/later')).peers, [])
  await countEdges(app)
  assert.equal((await read('later/Deployment/later')).peers.length, 1)
})

test('addresses inside the cluster and outside', () => {
  const outside = ['93.184.216.34', '203.0.113.10', '100.63.255.255', '172.32.0.1', '2001:db8::1', '2606:4700::1']
  const inside = [
    ...['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '127.0.0.1', '169.254.1.1', '0.0.0.0'],
    ...[
      '::',
      '::1',
      'fc00::1',
      'fdff::1',
      'fe80::1',
      '::ffff:10.0.0.1',
      '',
      'name',
      '1.2.3',
      '10.0.0.1/8',
      'fe80::1%eth0',
    ],
  ]
  assert.deepEqual(
    outside.filter((one) => !isExternalAddress(one)),
    [],
  )
  assert.deepEqual(inside.filter(isExternalAddress), [])
})
