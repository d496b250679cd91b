import assert from 'node:assert/strict'
import test from 'node:test'
import { Slice } from '../../lib/event-loop/slices.ts'
import { judge, type Verdict } from '../../lib/policies/evaluate.ts'
import type { AddressEnd, EvaluatedEnd, PodEnd } from '../../lib/policies/match.ts'
import type { Direction, Peer, Policy, PortRange, Rule } from '../../lib/policies/policy.ts'
import { Trial } from '../../lib/policies/trial.ts'
import { pods as podsOf, seen } from './generate-facts.ts'

const pod = (namespace: string, app: string | null, more: Partial<PodEnd> = {}): PodEnd => ({
  ...{ type: 'pod', namespace, namespaceLabels: null, labels: app === null ? null : { app }, ips: ['10.0.0.1'] },
  ...{ namedPorts: { http: 8080 }, isHostNetwork: false },
  ...more,
})
const address = (type: AddressEnd['type'], ip: string | null): AddressEnd => ({ type, ip })
const app = (value: string) => [{ key: 'app', operator: 'In' as const, values: [value] }]
const exists = (key: string) => [{ key, operator: 'Exists' as const, values: [] }]
const pods = (value: string, namespaces: (Peer & { kind: 'pods' })['namespaces'] = null): Peer => ({
  ...{ kind: 'pods', namespaces, pods: app(value) },
})
const block = (cidr: string, except: string[] = [], isForPods = true): Peer => ({
  kind: 'block',
  cidr,
  except,
  isForPods,
})
const rule = (peers: Peer[] | null, ports: PortRange[] | null = null, unknown: string | null = null): Rule => ({
  ...{ path: 'spec.ingress[0]', peers, ports, unknown },
})
const tcp = (port: number | string | null, endPort: number | null = null): PortRange => ({
  protocol: 'TCP',
  port,
  endPort,
})
const isolating = (allow: Rule[], deny: Rule[] = []): Direction => ({ allow, deny })
const policy = (more: Partial<Policy>): Policy => ({
  ...{ kind: 'NetworkPolicy', namespace: 'shop', name: 'one', document: 1, subject: app('web') },
  ...{ ingress: null, egress: null },
  ...more,
})

function verdict(
  policies: Policy[],
  {
    from = pod('shop', 'api'),
    to = pod('shop', 'web'),
    port = 8080,
    protocol = 'TCP',
  }: { from?: EvaluatedEnd; to?: EvaluatedEnd; port?: number | null; protocol?: string } = {},
): [Verdict, ...string[]] {
  const reasons = new Set<string>()
  const found = judge(policies, { from, to, port, protocol }, reasons).verdict
  return found === 'unknown' ? [found, ...reasons] : [found]
}
const ingress = (...allow: Rule[]) => [policy({ ingress: isolating(allow) })]
const cilium = (allow: Rule[], deny: Rule[] = []) =>
  policy({ kind: 'CiliumNetworkPolicy', ingress: isolating(allow, deny) })

const MAY_BE_OWN_NODE = 'a pod on the host network may be on the node of the other end, which is always allowed'

test('an end that no policy isolates allows everything, and both ends have to allow', () => {
  assert.deepEqual(verdict([]), ['allowed'])
  assert.deepEqual(verdict([policy({ namespace: 'other', ingress: isolating([]) })]), ['allowed'])
  assert.deepEqual(verdict([policy({ subject: app('api'), egress: isolating([rule(null)]) }), ...ingress()]), [
    'denied',
  ])
  assert.deepEqual(verdict([policy({ subject: app('api'), egress: isolating([]) }), ...ingress(rule(null))]), [
    'denied',
  ])
  assert.deepEqual(verdict([...ingress(), ...ingress(rule([pods('api')]))]), ['allowed'], 'policies are added up')
})

test('peers and ports of one rule both have to match, those of two rules do not help each other', () => {
  assert.deepEqual(verdict(ingress(rule([pods('api')], [tcp(8080)]))), ['allowed'])
  assert.deepEqual(verdict(ingress(rule([pods('api')], [tcp(80)]), rule([pods('db')], [tcp(8080)]))), ['denied'])
  assert.deepEqual(verdict(ingress(rule([], null))), ['denied'], 'an empty list of peers matches nobody')
  assert.deepEqual(verdict(ingress(rule(null, []))), ['denied'])
})

test('a named port is that of the server, and unknown where its ports are not known', () => {
  const named = ingress(rule(null, [tcp('http')]))
  assert.deepEqual(verdict(named), ['allowed'])
  assert.deepEqual(verdict(named, { port: 80 }), ['denied'])
  assert.deepEqual(verdict(named, { to: pod('shop', 'web', { namedPorts: {} }) }), ['denied'])
  assert.equal(verdict(named, { to: pod('shop', 'web', { namedPorts: null }) })[0], 'unknown')
  const web = pod('shop', 'web', { namedPorts: { 'http/TCP': 8080, 'http/UDP': 9090 } })
  assert.deepEqual(verdict(named, { to: web }), ['allowed'])
  assert.deepEqual(verdict(named, { to: web, port: 9090 }), ['denied'])
  const any = ingress(rule(null, [{ protocol: null, port: 'http', endPort: null }]))
  assert.deepEqual(verdict(any, { to: web, port: 9090, protocol: 'UDP' }), ['allowed'])
  assert.equal(verdict(ingress(rule(null, [tcp(80)])), { port: null })[0], 'unknown')
  assert.deepEqual(verdict(ingress(rule(null, [tcp(8000, 8080)]))), ['allowed'])
  assert.deepEqual(verdict(ingress(rule(null, [tcp(8000, 8079)]))), ['denied'])
})

test('a port that a pod on the host network names is unknown by that name', () => {
  const node = pod('shop', 'api', { ips: ['192.168.0.1'], namedPorts: { 'metrics/TCP': 9100 }, isHostNetwork: true })
  const egress = (port: number | string) => [
    policy({ egress: isolating([rule([block('192.168.0.0/24')], [tcp(port)])]) }),
  ]
  const of = (port: number | string) => verdict(egress(port), { from: pod('shop', 'web'), to: node, port: 9100 })
  assert.deepEqual(of('metrics'), ['unknown', 'network plugins differ in whether nodes have named ports'])
  assert.deepEqual(of('http'), ['unknown', MAY_BE_OWN_NODE])
  assert.deepEqual(of(9100), ['allowed'])
})

test('a NetworkPolicy says nothing of protocols beside TCP, UDP and SCTP', () => {
  for (const protocol of ['ICMP', 'ICMPv6', 'UNKNOWN(47)']) {
    const of = (policies: Policy[]) => verdict(policies, { port: null, protocol })[0]
    assert.equal(of(ingress()), 'unknown', protocol)
    assert.equal(of(ingress(rule(null))), 'unknown')
    assert.equal(of(ingress(rule([pods('api')], [tcp(8080)]))), 'unknown')
    assert.equal(of([policy({ subject: app('other'), ingress: isolating([]) })]), 'allowed')
    assert.equal(of([...ingress(rule(null)), cilium([])]), 'unknown')
    assert.equal(of([...ingress(), cilium([])]), 'denied')
    assert.equal(of([...ingress(), cilium([rule(null)])]), 'allowed')
  }
  assert.equal(verdict(ingress(rule(null, [tcp(8080)])), { protocol: 'tcp' })[0], 'allowed')
})

test('rules of Cilium without ports are about every protocol, those with ports and types of ICMP are not', () => {
  const some = (protocol: PortRange['protocol'], port: number | null = null) =>
    rule(null, [{ protocol, port, endPort: null }])
  const of = (allow: Rule[], deny: Rule[], protocol: string) =>
    verdict([cilium(allow, deny)], { port: null, protocol })[0]
  assert.equal(of([rule(null)], [], 'ICMP'), 'allowed')
  assert.equal(of([rule([pods('db')])], [], 'ICMP'), 'denied')
  assert.equal(of([some('TCP')], [], 'ICMP'), 'denied')
  assert.equal(of([some('ICMP')], [], 'ICMP'), 'unknown')
  assert.equal(of([some('ICMP')], [], 'ICMPv6'), 'denied')
  assert.equal(of([some('ICMPV6')], [], 'ICMPv6'), 'unknown')
  assert.equal(of([some('ICMP')], [], 'UNKNOWN(112)'), 'denied')
  assert.equal(of([some('OTHER')], [], 'UNKNOWN(112)'), 'unknown')
  assert.equal(of([some(null)], [], 'ICMP'), 'unknown', 'Cilium reads ANY as TCP, UDP and SCTP, and says all')
  assert.equal(of([some(null, 53)], [], 'ICMP'), 'denied')
  assert.equal(of([rule(null)], [some('ICMP')], 'ICMP'), 'unknown')
  assert.equal(of([rule(null)], [some('ICMP')], 'ICMPV6'), 'allowed')
  assert.deepEqual(verdict([cilium([rule(null)], [some('ICMP')])]), ['allowed'], 'of TCP')
})

test('only the name of a namespace is known: other labels of it are unknown, a wrong name is not', () => {
  const in_ = (key: string, value: string) => [{ key, operator: 'In' as const, values: [value] }]
  const name = in_('kubernetes.io/metadata.name', 'shop')
  assert.deepEqual(verdict(ingress(rule([pods('api', name)]))), ['allowed'])
  assert.deepEqual(verdict(ingress(rule([pods('api', in_('kubernetes.io/metadata.name', 'other'))]))), ['denied'])
  assert.deepEqual(verdict(ingress(rule([pods('api', [...name, ...in_('team', 'a')])]))), [
    'unknown',
    'labels of namespaces are not known',
  ])
  assert.deepEqual(verdict(ingress(rule([pods('db', in_('team', 'a'))]))), ['denied'], 'whatever the label is')
  const labelled = pod('shop', 'api', { namespaceLabels: { team: 'b' } })
  assert.deepEqual(verdict(ingress(rule([pods('api', in_('team', 'a'))])), { from: labelled }), ['denied'])
})

test('a label that a pod without a manifest may have is unknown, one that it has is not', () => {
  const some = pod('shop', 'api', { hasPartialLabels: true })
  const requires = (
    operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist',
    key = 'tier',
    values: string[] = [],
  ): Peer => ({
    ...{ kind: 'pods', namespaces: null, pods: [{ key, operator, values }] },
  })
  const from = (peer: Peer) => verdict(ingress(rule([peer])), { from: some })
  for (const peer of [requires('In', 'tier', ['a']), requires('NotIn', 'tier', ['a']), requires('Exists')])
    assert.deepEqual(from(peer), ['unknown', 'a pod was posted without a manifest, so not all of its labels are known'])
  assert.equal(from(requires('DoesNotExist'))[0], 'unknown')
  assert.deepEqual(from(pods('api')), ['allowed'])
  assert.deepEqual(from(pods('db')), ['denied'])
  assert.deepEqual(from(requires('DoesNotExist', 'app')), ['denied'])
  assert.deepEqual(
    from({ kind: 'pods', namespaces: null, pods: [...app('db'), ...exists('tier')] }),
    ['denied'],
    'whatever the tier is',
  )
  const tiered = [policy({ subject: exists('tier'), ingress: isolating([]) })]
  assert.equal(verdict(tiered, { to: pod('shop', 'web', { hasPartialLabels: true }) })[0], 'unknown')
  assert.deepEqual(verdict(tiered), ['allowed'])
})

test('address blocks of both families are taken together for a pod that has both', () => {
  const both = pod('shop', 'api', { ips: ['10.0.0.1', 'fd00::1'] })
  assert.deepEqual(verdict(ingress(rule([block('0.0.0.0/0'), block('::/0')])), { from: both }), ['allowed'])
  assert.equal(verdict(ingress(rule([block('0.0.0.0/0')])), { from: both })[0], 'unknown')
  const each = [rule([block('0.0.0.0/0')]), rule([block('::/0')])]
  assert.deepEqual(verdict(ingress(...each), { from: both }), ['allowed'], 'each in a rule of its own')
  assert.deepEqual(verdict([policy({ ingress: isolating([rule(null)], each) })], { from: both }), ['denied'])
  assert.deepEqual(verdict(ingress(rule([block('10.1.0.0/16')])), { from: both }), ['denied'])
  assert.deepEqual(verdict(ingress(rule([block('10.0.0.0/8', ['10.0.0.0/24'])])), { from: both }), ['denied'])
  assert.deepEqual(verdict(ingress(rule([block('0.0.0.0/0', [], false)])), { from: both }), ['denied'], 'of Cilium')
  assert.deepEqual(verdict(ingress(rule([block('10.0.0.0/8')])), { from: address('external', '::ffff:10.0.0.1') }), [
    'denied',
  ])
})

test('entities match what is known to be there', () => {
  const of = (kind: 'world' | 'cluster' | 'all' | 'nodes') => ingress(rule([{ kind }]))
  const verdicts = (end: EvaluatedEnd) =>
    (['world', 'cluster', 'all', 'nodes'] as const).map((kind) => verdict(of(kind), { from: end })[0])
  assert.deepEqual(verdicts(pod('x', 'api')), ['denied', 'allowed', 'allowed', 'denied'])
  assert.deepEqual(verdicts(address('node', '192.168.0.1')), ['denied', 'allowed', 'allowed', 'allowed'])
  assert.deepEqual(verdicts(address('external', '1.1.1.1')), ['allowed', 'denied', 'allowed', 'denied'])
  assert.deepEqual(verdicts(address('unresolved', '10.9.9.9')), ['unknown', 'unknown', 'allowed', 'unknown'])
})

test('a deny rule wins over every allow rule, also when it cannot be told', () => {
  const denying = (deny: Rule) => [
    policy({ kind: 'CiliumNetworkPolicy', ingress: isolating([], [deny]) }),
    ...ingress(rule(null)),
  ]
  assert.deepEqual(verdict(denying(rule([pods('api')]))), ['denied'])
  assert.deepEqual(verdict(denying(rule([pods('db')]))), ['allowed'])
  assert.equal(verdict(denying(rule([{ kind: 'unknown', reason: 'a DNS name' }])))[0], 'unknown')
})

test('rules without default deny count only where another policy isolates the pod; its deny rules always do', () => {
  const open = (allow: Rule[], deny: Rule[] = []) =>
    policy({ kind: 'CiliumNetworkPolicy', ingress: { allow, deny, isWithoutDefaultDeny: true } })
  const sides = (policies: Policy[]) =>
    judge(policies, { from: pod('shop', 'api'), to: pod('shop', 'web'), port: 80, protocol: 'TCP' }).sides.length
  assert.deepEqual([verdict([open([rule([pods('db')])])]), sides([open([rule([pods('db')])])])], [['allowed'], 0])
  assert.deepEqual(verdict([open([rule([pods('db')])]), cilium([])]), ['denied'])
  assert.deepEqual(verdict([open([rule([pods('api')])]), cilium([])]), ['allowed'])
  assert.deepEqual(verdict([open([], [rule([pods('api')])])]), ['denied'])
  assert.deepEqual([verdict([open([], [rule([pods('db')])])]), sides([open([], [rule(null)])])], [['allowed'], 1])
  assert.equal(verdict([open([], [rule([{ kind: 'unknown', reason: 'a DNS name' }])])])[0], 'unknown')
  assert.deepEqual(verdict([open([rule(null)], [rule([pods('api')])]), ...ingress(rule(null))]), ['denied'])
})

test('a rule of layer 7 and a peer that cannot be told are unknown only where nothing else decides', () => {
  assert.deepEqual(verdict(ingress(rule([pods('api')], null, 'rules of layer 7'))), ['unknown', 'rules of layer 7'])
  assert.deepEqual(verdict(ingress(rule([pods('db')], null, 'rules of layer 7'))), ['denied'])
  assert.deepEqual(verdict(ingress(rule([pods('api')], null, 'rules of layer 7'), rule([pods('api')]))), ['allowed'])
})

test('a pod on the host network may be on the node of the other end, which only Cilium denies it', () => {
  const host = pod('mon', 'agent', { isHostNetwork: true })
  assert.deepEqual(verdict(ingress(), { from: host }), ['unknown', MAY_BE_OWN_NODE])
  assert.deepEqual(verdict([cilium([])], { from: host }), ['unknown', MAY_BE_OWN_NODE])
  assert.deepEqual(verdict([cilium([], [rule([{ kind: 'nodes' }])])], { from: host }), ['denied'])
  const egress = { subject: app('api'), egress: isolating([]) }
  assert.deepEqual(verdict([policy(egress)], { to: host }), ['unknown', MAY_BE_OWN_NODE])
  assert.deepEqual(verdict([policy({ ...egress, kind: 'CiliumNetworkPolicy' })], { to: host }), ['denied'])
})

test('pods on the host network, pods that are gone and unknown endpoints are never denied for sure', () => {
  const host = pod('shop', 'web', { isHostNetwork: true })
  assert.equal(verdict(ingress(), { to: host })[0], 'unknown')
  assert.equal(
    verdict(ingress(rule([pods('api')])), { from: pod('shop', 'api', { isHostNetwork: true }) })[0],
    'unknown',
  )
  assert.equal(verdict(ingress(), { to: pod('shop', null) })[0], 'unknown')
  assert.deepEqual(verdict([policy({ subject: [], ingress: isolating([]) })], { to: pod('shop', null) }), ['denied'])
  assert.equal(verdict(ingress(rule([pods('api')])), { from: pod('shop', null) })[0], 'unknown')
  const egress = (...allow: Rule[]) => [policy({ subject: app('api'), egress: isolating(allow) })]
  assert.equal(verdict(egress(rule([block('10.0.0.0/8')])), { to: address('unknown', null) })[0], 'unknown')
  assert.deepEqual(verdict(egress(rule(null, [tcp(6443)])), { to: address('unknown', null), port: 6443 }), ['allowed'])
  assert.deepEqual(verdict(egress(rule(null, [tcp(443)])), { to: address('unknown', null), port: 6443 }), ['denied'])
})

test('a trial that looks at thousands of pods lets other requests run between any two', async () => {
  let pauses = 0
  class Eager extends Slice {
    override get isOver() {
      pauses++
      return true
    }
  }
  const policies = [policy({ ingress: isolating([rule([block('10.9.0.0/16')])]) })]
  const facts = {
    pods: ['web', 'api'].map((name) =>
      podsOf(`shop/Deployment/${name}`, { app: name }, { ips: ['10.9.0.1', '10.8.0.1'] }),
    ),
    services: [],
    connections: [seen('shop/Deployment/api > shop/Deployment/web 80', { flows: 2 })],
  }
  const trial = new Trial(policies, facts)
  const [edge] = await trial.edges()
  const from = (ip: string) => ({
    from: pod('shop', 'api', { ips: [ip] }),
    to: pod('shop', 'web'),
    isOnePod: false,
    flows: 1,
  })
  const judged = await trial.byPods(edge!, [from('10.9.0.1'), from('10.8.0.1')], new Eager())
  assert.deepEqual([judged.verdict, judged.flows, pauses], ['denied', 1, 2])
})

test('a trial counts the addresses that it compares with blocks', async () => {
  const blocks = Array.from({ length: 5_000 }, (_, n) => block(`20.${n >> 8}.${n & 255}.0/24`))
  const policies = [policy({ subject: app('api'), egress: isolating([rule(blocks)]) })]
  const trial = (count: number) => {
    const ips = Array.from({ length: count }, (_, n) => `10.9.${n >> 8}.${n & 255}`)
    const pods = [podsOf('shop/Deployment/web', { app: 'web' }, { ips }), podsOf('shop/Deployment/api', { app: 'api' })]
    const connections = [seen('shop/Deployment/api > shop/Deployment/web 80')]
    return new Trial(policies, { pods, services: [], connections }).edges()
  }
  assert.equal((await trial(10))[0]!.verdict, 'denied')
  await assert.rejects(trial(50_000), { status: 400, message: /^too many peers and ports for so many edges/ })
})
