/** What policies allow, leave out and say, one decision of docs/contract.md#network-policies each. */
import assert from 'node:assert/strict'
import test from 'node:test'
import type { Connection, Facts } from '../../lib/policies/facts.ts'
import type { MakeOptions } from '../../lib/policies/make/policy.ts'
import { parsePolicies } from '../../lib/policies/parse.ts'
import { Trial } from '../../lib/policies/trial.ts'
import { jsonOf, make, pods, seen, service, yamlOf } from './generate-facts.ts'

const WEB = pods('shop/Deployment/web', { app: 'web' }, { selectorLabels: { app: 'web' } })
const API = pods('shop/Deployment/api', { app: 'api' }, { selectorLabels: { app: 'api' }, namedPorts: { http: 8080 } })
/** A resolver, so that the usual rule is not added. */
const RESOLVER = seen('shop/Deployment/web > unresolved 10.9.9.9 53/UDP')

interface Spec {
  readonly ingress?: readonly object[]
  readonly egress?: readonly object[]
}

/** The policy of `shop/Deployment/web`. Rules for `RESOLVER` are left out. */
async function web(facts: Partial<Facts>, options: Partial<MakeOptions> = {}) {
  const connections = [...(facts.connections ?? []), RESOLVER]
  const { manifest, notes, gaps } = await make(
    'shop/Deployment/web',
    { pods: [WEB, API], ...facts, connections },
    options,
  )
  const { ingress = [], egress = [] } = manifest.spec as Spec
  return { ingress, egress: egress.filter((one) => !JSON.stringify(one).includes('10.9.9.9/32')), notes, gaps }
}
const to = (text: string) => seen(`shop/Deployment/web > ${text}`)
const from = (text: string) => {
  const [end, port] = [text.slice(0, text.lastIndexOf(' ')), text.slice(text.lastIndexOf(' ') + 1)]
  return seen(`${end} > shop/Deployment/web ${port}`, { seenBy: 'to' })
}
const tcp = (port: number | string) => ({ protocol: 'TCP', port })
const HOST = { isHostNetwork: true, ips: ['192.168.0.7'], namedPorts: { metrics: 9100 } }

test('pods on the host network behind a service: their addresses, and the number of a named port', async () => {
  const facts = {
    pods: [WEB, pods('mon/DaemonSet/exporter', { app: 'exporter' }, HOST)],
    services: [service('mon/exporter', { app: 'exporter' }, '80:metrics')],
    connections: [to('service mon/exporter 80')],
  }
  assert.deepEqual((await web(facts)).egress, [{ to: [{ ipBlock: { cidr: '192.168.0.7/32' } }], ports: [tcp(9100)] }])
  assert.deepEqual((await web(facts, { format: 'cilium' })).egress, [
    { toEntities: ['host', 'remote-node'], toPorts: [{ ports: [{ port: '9100', protocol: 'TCP' }] }] },
  ])
  const mixed = [...facts.pods, pods('mon/Deployment/exporter', { app: 'exporter' }, { namedPorts: { metrics: 9100 } })]
  const { egress } = await web({ ...facts, pods: mixed })
  assert.match(JSON.stringify(egress), /"podSelector":.*"app":"exporter"/)
  assert.match(JSON.stringify(egress), /192\.168\.0\.7/)
})

test('pods on the host network between their runs are still nodes', async () => {
  const scan = pods('mon/CronJob/scan', { app: 'scan' }, { ...HOST, isLiving: false })
  const { ingress } = await web({ pods: [WEB, scan], connections: [from('mon/CronJob/scan 80')] })
  assert.deepEqual(ingress, [{ from: [{ ipBlock: { cidr: '192.168.0.7/32' } }], ports: [tcp(80)] }])
  const { gaps } = await make('mon/CronJob/scan', {
    pods: [scan],
    connections: [seen('mon/CronJob/scan > unresolved 10.9.9.9 53/UDP')],
  })
  assert.deepEqual(gaps, ['it uses the host network, where most network plugins apply no policy'])
})

for (const [what, known, says] of [
  ['a selector', service('shop/x', { 'a b': 'c' }, '80:80'), 'its selector is none of Kubernetes'],
  ['a target port', service('shop/x', { app: 'x' }, '80:Not one'), 'its target port "Not one" is no name of a port'],
] as const)
  test(`${what} that the API server refuses is left out, so that it accepts the rest`, async () => {
    const { egress, notes } = await web({ services: [known], connections: [to('service shop/x 80')] })
    assert.deepEqual(egress, [])
    assert.deepEqual(notes, [`LEFT OUT: egress to service shop/x: ${says}`])
  })

test('a workload is as old as its own first flow or post, not as the service in front of it', async () => {
  const v2 = pods('shop/Deployment/api-v2', { app: 'api', track: 'v2' })
  const old = { firstSeenAt: '2025-11-01T00:00:00' }
  const throughService = seen('shop/Deployment/web > service shop/api 80', old)
  const gapsOf = async (connections: Connection[], since: string | null) => {
    const facts = { pods: [WEB, v2], services: [service('shop/api', { app: 'api' }, '80:8080')], connections }
    return (await make('shop/Deployment/api-v2', facts, {}, { since })).gaps
  }
  const since = '2026-01-31T12:00:00'
  const young = [`observed since ${since}, which is less than 7 days`]
  assert.deepEqual(await gapsOf([throughService], since), young)
  for (const own of ['web > shop/Deployment/api-v2', 'api-v2 > external 1.1.1.1', 'api-v2 > service shop/api'])
    assert.deepEqual(await gapsOf([throughService, seen(`shop/Deployment/${own} 80`, old)], since), [], own)
  assert.deepEqual(await gapsOf([throughService], null), [], 'nothing else is known')
})

test('ends that nobody can name are left out, with the reason', async () => {
  const { ingress, egress, notes } = await web({
    services: [service('shop/api', { app: 'api' }, '80:8080')],
    connections: [
      ...[to('service shop/gone 80'), to('service shop/api 81'), to('pod shop/gone 80'), to('shop/Job/gone 80')],
      ...[to('external - 80'), to('external nowhere 80'), to('external 1.1.1.1 0'), to('external 1.1.1.1 80/ICMP')],
      ...[from('unresolved fe80::1%eth0 80'), to('external 1.1.1.1 99999')],
    ],
  })
  assert.deepEqual([...ingress, ...egress], [])
  assert.deepEqual(notes, [
    'LEFT OUT: egress to external 1.1.1.1: its port 0 is none',
    'LEFT OUT: egress to external 1.1.1.1: its port 99999 is none',
    'LEFT OUT: egress to external 1.1.1.1: no policy knows the protocol ICMP',
    'LEFT OUT: egress to external nowhere: its address is not known',
    'LEFT OUT: egress to external unknown: its address is not known',
    'LEFT OUT: egress to service shop/api: it has no port 81/TCP',
    'LEFT OUT: egress to service shop/gone: the service is not known any more',
    'LEFT OUT: egress to shop/Job/gone: no labels of its pods are known',
    'LEFT OUT: egress to shop/Pod/gone: no labels of its pods are known',
    'LEFT OUT: ingress from address fe80::1%eth0: its address is not known',
  ])
})

test('connections within a pod, over its loopback, are none that a policy allows or denies', async () => {
  const connections = [to('unresolved 127.0.0.1 53/UDP'), from('unresolved ::1 80'), from('unresolved 127.0.0.2 80')]
  const { ingress, egress, notes } = await web({ connections })
  assert.deepEqual([...ingress, ...egress, ...notes], [])
})

test('a peer whose pods are gone is known by the labels that they had', async () => {
  const gone = pods('shop/Deployment/gone', { app: 'gone', 'pod-template-hash': 'a' }, { isLiving: false })
  const { egress } = await web({ pods: [WEB, gone], connections: [to('shop/Deployment/gone 80')] })
  assert.deepEqual(egress, [{ to: [{ podSelector: { matchLabels: { app: 'gone' } } }], ports: [tcp(80)] }])
})

test('a pod without a workload is its own workload', async () => {
  const lone = pods('shop/Pod/lone', { app: 'lone' })
  const { egress } = await web({ pods: [WEB, lone], connections: [to('pod shop/lone 80')] })
  assert.deepEqual(egress, [{ to: [{ podSelector: { matchLabels: { app: 'lone' } } }], ports: [tcp(80)] }])
})

test('of each kind of note 20 at most, so that an annotation can hold them', async () => {
  const gone = Array.from({ length: 5_000 }, (_, i) => to(`pod shop/${'long-'.repeat(40)}${i} 80`))
  const { notes } = await web({ connections: gone })
  assert.equal(notes.length, 21)
  assert.equal(notes.at(-1), 'LEFT OUT: +4980 more')
  const dropped = Array.from({ length: 30 }, (_, i) => ({ ...to(`shop/Deployment/api ${100 + i}`), isDropped: true }))
  const { notes: ofDropped } = await web({ connections: dropped })
  assert.equal(ofDropped.length, 21)
  assert.equal(ofDropped.at(-1), 'dropped: +10 more')
})

test('a name cannot start a line of its own, in comments or in JSON', async () => {
  const connection = {
    ...to('external 1.1.1.1 80'),
    to: { type: 'pod' as const, namespace: 'shop', name: 'x\nNOTE: y' },
  }
  const facts = { pods: [WEB], connections: [connection, RESOLVER] }
  const says = 'LEFT OUT: egress to "shop/Pod/x NOTE: y": no labels of its pods are known'
  assert.ok((await yamlOf('shop/Deployment/web', facts)).includes(`# NOTE: ${says}\n`))
  const { annotations } = JSON.parse(await jsonOf('shop/Deployment/web', facts)).metadata
  assert.equal(annotations['example.test/notes'].split('\n')[0], says)
})

test('more than 25 external addresses on a port become 25 networks at most, of both families together', async () => {
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, i) => [
      to(`external 52.${i * 9}.1.1 443`),
      to(`external 2600:0:${i}::1 443`),
    ]).flat()
  const cidrs = ({ egress }: { egress: readonly object[] }) =>
    [...JSON.stringify(egress).matchAll(/"cidr":"([^"]*)"/g)].map(([, cidr]) => cidr!)
  const many = await web({ connections: addresses(28) })
  assert.ok(cidrs(many).length <= 25, `${cidrs(many).length}`)
  assert.ok(cidrs(many).some((one) => one.includes(':')) && cidrs(many).some((one) => one.includes('.')))
  assert.match(many.notes.join(), /^egress to 56 external addresses on 443\/TCP: these networks cover them: /)
  assert.ok(cidrs(many).every((one) => many.notes.join().includes(one)))
  const few = await web({ connections: addresses(12) })
  assert.deepEqual([cidrs(few).length, few.notes], [24, []])
})

test('a note counts addresses, also where networks are named', async () => {
  const connections = Array.from({ length: 60 }, (_, i) => to(`external 52.${i >> 1}.1.${i} 443`))
  const { notes } = await web({ connections }, { cidr: '24' })
  assert.match(notes.join(), /^egress to 60 external addresses/)
})

test('networks are never shorter than 8 bits: all addresses but private ones instead', async () => {
  const connections = Array.from({ length: 30 }, (_, i) => to(`external ${1 + i * 7}.1.1.1 443`))
  const { egress } = await web({ connections })
  const except = ['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16']
  assert.deepEqual(egress, [{ to: [{ ipBlock: { cidr: '0.0.0.0/0', except } }], ports: [tcp(443)] }])
  const { egress: cilium } = await web({ connections }, { format: 'cilium' })
  assert.match(JSON.stringify(cilium), /"toCIDRSet":\[\{"cidr":"0\.0\.0\.0\/0","except":\["10\.0\.0\.0\/8"/)
})

test('networks that cover external addresses leave out the private ones in them', async () => {
  const pairs = ['172.217.16.14', '172.64.155.9', '100.20.1.1', '100.200.1.1', '192.0.78.9', '192.229.1.1']
  const others = Array.from({ length: 22 }, (_, i) => `${20 + i}.5.5.5`)
  const connections = [...pairs, ...others].map((ip) => from(`external ${ip} 443`))
  const exceptions = async (format: 'kubernetes' | 'cilium') => {
    const text = JSON.stringify((await web({ connections }, { format })).ingress)
    return [...text.matchAll(/"cidr":"([^"]*)","except":(\[[^\]]*\])/g)].map(([, cidr, except]) => [
      cidr,
      JSON.parse(except!),
    ])
  }
  const found = [
    ['100.0.0.0/8', ['100.64.0.0/10']],
    ['172.0.0.0/8', ['172.16.0.0/12']],
    ['192.0.0.0/8', ['192.168.0.0/16']],
  ]
  assert.deepEqual(await exceptions('kubernetes'), found)
  assert.deepEqual(await exceptions('cilium'), found)
})

test('four ephemeral ports of a peer are named, five are all ports of the protocol', async () => {
  const ports = (count: number) => Array.from({ length: count }, (_, i) => to(`shop/Deployment/api ${32_768 + i}`))
  const four = await web({ connections: [...ports(4), to('shop/Deployment/api 21')] })
  assert.deepEqual([JSON.stringify(four.egress).split('"port"').length - 1, four.notes], [5, []])
  const five = await web({ connections: [...ports(5), to('shop/Deployment/api 21'), to('shop/Deployment/api 53/UDP')] })
  assert.match(JSON.stringify(five.egress), /"ports":\[.*\{"protocol":"TCP"\}.*\]/)
  assert.match(JSON.stringify(five.egress), /\{"protocol":"UDP","port":53\}/)
  assert.doesNotMatch(JSON.stringify(five.egress), /"port":21/)
  assert.match(five.notes.join(), /5 ports from 32768 on were seen, so all ports of TCP are allowed/)
})

test('a broader rule replaces narrower ones, and their notes', async () => {
  const twins = ['blue', 'green'].map((name) => pods(`shop/Deployment/${name}`, { app: 'front', tier: 'x' }))
  const { egress, notes } = await web({
    pods: [WEB, ...twins],
    services: [service('shop/front', { app: 'front' }, '80:8080')],
    connections: [to('service shop/front 80'), to('shop/Deployment/blue 8080')],
  })
  assert.deepEqual(egress, [{ to: [{ podSelector: { matchLabels: { app: 'front' } } }], ports: [tcp(8080)] }])
  assert.deepEqual(notes, [])
})

for (const format of ['kubernetes', 'cilium'] as const)
  test(`a rule is not left out because of one that is left out itself, ${format}`, async () => {
    const variant = (name: string, track: string, selectorLabels: Record<string, string>) =>
      pods(`shop/Deployment/${name}`, { app: 'front', track }, { selectorLabels })
    const facts: Facts = {
      pods: [
        ...[WEB, variant('front', 'stable', { app: 'front' })],
        variant('canary', 'canary', { app: 'front', track: 'canary' }),
      ],
      services: [service('shop/front', { app: 'front', track: 'stable' }, '80:8080')],
      connections: [to('service shop/front 80'), to('shop/Deployment/front 8080'), to('shop/Deployment/canary 8080')],
    }
    const policies = await parsePolicies(await yamlOf('shop/Deployment/web', facts, { format }), 'yaml')
    const edges = await new Trial(policies, facts).edges()
    assert.deepEqual(
      edges.map(({ to, verdict }) => ({ to: (to as { name: string }).name, verdict })),
      [
        { to: 'front', verdict: 'allowed' },
        { to: 'canary', verdict: 'allowed' },
      ],
    )
  })

test('a service whose selector Cilium ignores: the workloads behind it, with a note', async () => {
  const name = { 'statefulset.kubernetes.io/pod-name': 'db-0' }
  const known = {
    pods: [WEB, pods('shop/StatefulSet/db', { app: 'db', ...name }), pods('shop/StatefulSet/db', { app: 'db' })],
    services: [service('shop/db-0', name, '5432:5432')],
    connections: [to('service shop/db-0 5432')],
  }
  const { egress, notes } = await web(known, { format: 'cilium' })
  const toPorts = [{ ports: [{ port: '5432', protocol: 'TCP' }] }]
  assert.deepEqual(egress, [{ toEndpoints: [{ matchLabels: { app: 'db' } }], toPorts }])
  const says = 'egress to service shop/db-0: Cilium ignores labels of its selector'
  assert.deepEqual(notes, [`${says}: all pods of shop/StatefulSet/db are allowed`])
  const gone = await web({ ...known, pods: [WEB] }, { format: 'cilium' })
  assert.deepEqual(gone.egress, [])
  assert.deepEqual(gone.notes, [`LEFT OUT: ${says}, and no pod behind it is known`])
  assert.deepEqual((await web(known)).egress, [{ to: [{ podSelector: { matchLabels: name } }], ports: [tcp(5432)] }])
})

test('a service whose selector is another one after the next revision: the workloads behind it, with a note', async () => {
  const hash = { 'rollouts-pod-template-hash': 'f6d8' }
  const api = pods('shop/Rollout/api', { app: 'api', ...hash }, { selectorLabels: { app: 'api' } })
  const known = {
    pods: [WEB, api],
    services: [service('shop/api', { app: 'api', ...hash }, '80:http')],
    connections: [to('service shop/api 80')],
  }
  const { egress, notes } = await web(known)
  assert.deepEqual(egress, [{ to: [{ podSelector: { matchLabels: { app: 'api' } } }], ports: [tcp('http')] }])
  const says = 'egress to service shop/api: labels of its selector change with a revision or a version'
  assert.deepEqual(notes, [`${says}: all pods of shop/Rollout/api are allowed`])
})

test('an address never stands for the labels of pods, which have another one after a restart', async () => {
  const db = pods('shop/StatefulSet/db', { app: 'db' }, { selectorLabels: { app: 'db' }, ips: ['10.1.0.5'] })
  for (const [cidr, block, ip] of [
    ['exact', '10.1.0.5/32', '10.1.0.5'],
    ['24', '10.1.0.0/24', '10.1.0.9'],
  ] as const) {
    const connections = [to('shop/StatefulSet/db 5432'), to(`unresolved ${ip} 5432`)]
    const { egress } = await web({ pods: [WEB, db], connections }, { cidr })
    const peers = [{ podSelector: { matchLabels: { app: 'db' } } }, { ipBlock: { cidr: block } }]
    assert.deepEqual(egress.at(-1), { to: peers, ports: [tcp(5432)] })
  }
})

test('a peer that cannot be told from another one: a note names the other', async () => {
  const twins = ['blue', 'green'].map((name) => pods(`shop/Deployment/${name}`, { app: 'front' }))
  const { notes } = await web({ pods: [WEB, ...twins], connections: [to('shop/Deployment/blue 80')] })
  assert.deepEqual(notes, ['egress to shop/Deployment/blue: its labels also select the pods of shop/Deployment/green'])
})

test('peers that cannot be told from each other: on a port of both no note, on that of one a note names the other', async () => {
  const twins = ['blue', 'green'].map((name) => pods(`shop/Deployment/${name}`, { app: 'front' }))
  const connections = [to('shop/Deployment/blue 80'), to('shop/Deployment/green 80'), to('shop/Deployment/green 81')]
  const says = 'egress to shop/Deployment/green: its labels also select the pods of shop/Deployment/blue'
  for (const seenIn of [connections, connections.toReversed()])
    assert.deepEqual((await web({ pods: [WEB, ...twins], connections: seenIn })).notes, [says])
})

test('services without a selector allow their port to everyone, and all of them are named', async () => {
  const { egress, notes } = await web({
    services: [service('shop/one', null, '80:8080'), service('shop/two', null, '81:8080')],
    connections: [to('service shop/two 81'), to('service shop/one 80')],
  })
  assert.deepEqual(egress, [{ ports: [tcp(8080)] }])
  assert.match(notes.join(), /^egress to service shop\/one, service shop\/two: they have no selector/)
  assert.match(notes.join(), /allowed on 8080\/TCP, which may not be their port/)
})

test('a service without a selector has no pods that name its target port', async () => {
  const { egress, notes } = await web({
    services: [service('shop/x', null, '80:http')],
    connections: [to('service shop/x 80')],
  })
  assert.deepEqual(egress, [])
  assert.deepEqual(notes, [
    'LEFT OUT: egress to service shop/x: it has no selector, so no pod names its target port http',
  ])
})

test('what is made can be read again, whatever clients sent', async () => {
  const odd = pods('odd-é/Deployment/é', { app: 'x' })
  const facts = {
    pods: [WEB, odd],
    services: [service('odd-é/x', { app: 'x' }, '80:80')],
    connections: [to('odd-é/Deployment/é 80'), to('service odd-é/x 80'), RESOLVER],
  }
  for (const format of ['kubernetes', 'cilium'] as const)
    assert.equal((await parsePolicies(await yamlOf('shop/Deployment/web', facts, { format }), 'yaml')).length, 1)
})

test('what was dropped is no rule; a note says whether it is allowed, because it was also answered', async () => {
  const dropped = (text: string) => ({ ...to(text), isDropped: true })
  const { egress, notes } = await web({
    services: [service('shop/api', { app: 'api' }, '80:8080')],
    connections: [
      ...[dropped('shop/Deployment/api 8080'), dropped('shop/Deployment/api 8081'), dropped('service shop/api 80')],
      to('service shop/api 80'),
    ],
  })
  assert.equal(egress.length, 1)
  assert.deepEqual(notes, [
    'dropped at times, but allowed: shop/Deployment/web to service shop/api on 80/TCP',
    'dropped at times, but allowed: shop/Deployment/web to shop/Deployment/api on 8080/TCP',
    'dropped, so not allowed: shop/Deployment/web to shop/Deployment/api on 8081/TCP',
  ])
})

test('servers that reported other ports than the target port of their service: both, with a note', async () => {
  const services = [service('shop/api', { app: 'api' }, '80:http')]
  const byServer = (port: number) => ({ ...to(`shop/Deployment/api ${port}`), seenBy: 'to' as const })
  const differs = await web({ services, connections: [to('service shop/api 80'), byServer(9000)] })
  assert.deepEqual(differs.egress, [
    { to: [{ podSelector: { matchLabels: { app: 'api' } } }], ports: [tcp(9000), tcp('http')] },
  ])
  assert.deepEqual(differs.notes, [
    'egress to service shop/api: the servers behind service shop/api reported 9000/TCP and not its target port 8080: ' +
      'both are allowed',
  ])
  const agrees = await web({ services, connections: [to('service shop/api 80'), byServer(8080), byServer(9000)] })
  assert.deepEqual(agrees.notes, [])
  const { manifest } = await make('shop/Deployment/api', {
    pods: [WEB, API],
    services,
    connections: [to('service shop/api 80'), byServer(8080)],
  })
  const ports = [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [tcp('http')] }]
  assert.deepEqual((manifest.spec as Spec).ingress, ports, 'the name stands for its number')
})

test('a resolver that listens elsewhere is one, by the name of its port', async () => {
  const resolver = pods('openshift-dns/DaemonSet/dns-default', { dns: 'default' }, { namedPorts: { dns: 5353 } })
  const services = [service('openshift-dns/dns-default', { dns: 'default' }, '53/UDP:dns')]
  const connections = [to('openshift-dns/DaemonSet/dns-default 5353/UDP')]
  const { notes } = await make('shop/Deployment/web', { pods: [WEB, resolver], services, connections })
  assert.deepEqual(notes, [])
})

test('the usual rule for a resolver: as its service says, or of the usual labels', async () => {
  const usual = async (...services: Facts['services']) => {
    const connections = [to('external 1.1.1.1 443')]
    const { manifest, notes } = await make('shop/Deployment/web', { pods: [WEB], services, connections })
    assert.match(notes.join(), /a resolver of the cluster was not seen/)
    return JSON.stringify((manifest.spec as Spec).egress)
  }
  assert.match(await usual(), /"k8s-app":"kube-dns".*\{"protocol":"TCP","port":53\},\{"protocol":"UDP","port":53\}/)
  const kubeDns = service('kube-system/kube-dns', { 'k8s-app': 'coredns' }, '53/UDP:dns', '53/TCP:dns-tcp')
  const other = service('kube-system/adguard', { app: 'adguard' }, '53/UDP:53')
  assert.match(await usual(other, kubeDns), /"k8s-app":"coredns".*"dns-tcp".*"dns"/)
})

test('a resolver that was seen over TCP alone: UDP, which may not have been stored, by the usual rule', async () => {
  const services = [service('kube-system/kube-dns', { 'k8s-app': 'kube-dns' }, '53/UDP:53', '53/TCP:53')]
  const of = (...connections: Connection[]) => make('shop/Deployment/web', { pods: [WEB], services, connections })
  const overTcp = await of(to('service kube-system/kube-dns 53'))
  assert.match(
    overTcp.notes.join(),
    /egress to a resolver of the cluster was not seen over UDP: the usual rule for it is added/,
  )
  const [rule, ...others] = (overTcp.manifest.spec as Spec).egress as { ports: unknown }[]
  assert.deepEqual([rule!.ports, others], [[tcp(53), { protocol: 'UDP', port: 53 }], []])
  assert.deepEqual(
    (await of(to('service kube-system/kube-dns 53'), to('service kube-system/kube-dns 53/UDP'))).notes,
    [],
  )
})

test('in JSON an annotation says what the comments of YAML say', async () => {
  const facts = { pods: [WEB], connections: [RESOLVER] }
  const { annotations } = JSON.parse(await jsonOf('shop/Deployment/web', facts)).metadata
  assert.match(annotations['example.test/notes'], /^The broker cannot know whether the network plugin enforces/)
})

test('each workload has a policy of its own name, which Kubernetes accepts', async () => {
  const long = 'a'.repeat(250)
  const odd = ['shop/deployment/web', 'shop/Deployment/Web', 'shop/Deny/default', `shop/Deployment/${long}`]
  const all = ['shop/Deployment/web', 'shop/StatefulSet/web', ...odd, `shop/StatefulSet/${long}`, 'shop/Pod/é']
  const names: string[] = []
  for (const one of all) {
    const { manifest } = await make(one, { pods: [pods(one, { app: 'x' })] })
    names.push((manifest.metadata as { name: string }).name)
  }
  assert.deepEqual(names.slice(0, 2), ['web-deployment', 'web-statefulset'])
  assert.equal(new Set([...names, 'default-deny']).size, all.length + 1)
  for (const name of names) assert.match(name, /^(?=.{1,253}$)[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/)
})
