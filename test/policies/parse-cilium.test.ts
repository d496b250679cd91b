import assert from 'node:assert/strict'
import test from 'node:test'
import { HttpError } from '../../lib/errors.ts'
import { judge } from '../../lib/policies/evaluate.ts'
import type { PodEnd } from '../../lib/policies/match.ts'
import { MAX_POLICIES, parsePolicies } from '../../lib/policies/parse.ts'
import { type Direction, NAMESPACE_NAME, type Peer, type Policy } from '../../lib/policies/policy.ts'
import { assertEach } from '../support/assert-each.ts'

const policy = (fields: object) => ({
  apiVersion: 'cilium.io/v2',
  kind: 'CiliumNetworkPolicy',
  metadata: { name: 'one', namespace: 'shop' },
  ...fields,
})
const parse = (fields: object) => parsePolicies(JSON.stringify(policy(fields)), 'json')

async function parsed(spec: object): Promise<Policy> {
  const [one, ...others] = await parse({ spec: { endpointSelector: {}, ...spec } })
  assert.deepEqual(others, [])
  return one!
}

async function refusal(fields: object): Promise<string> {
  const error = await parse(fields).then(
    () => assert.fail(`not refused: ${JSON.stringify(fields)}`),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof HttpError, String(error))
  assert.equal(error.status, 400, error.message)
  return error.message
}

/** Each row is a spec, with a selector if it has none, and what its message must be, without the document. */
const refusesSpecs = (rows: readonly (readonly [object, string])[]) =>
  assertEach(rows, async ([spec, message]) => {
    assert.equal(await refusal({ spec: { endpointSelector: {}, ...spec } }), `document 1: ${message}`)
  })

const egressOf = async (rule: object) => (await parsed({ egress: [rule] })).egress!.allow
const peersOf = async (rule: object) => (await egressOf(rule))[0]!.peers
const inOne = (key: string, value: string) => ({ key, operator: 'In', values: [value] })
const pods = (selector: object[], namespaces: object[] | null = null) => ({ kind: 'pods', namespaces, pods: selector })
const block = (cidr: string, ...except: string[]) => ({ kind: 'block', cidr, except, isForPods: false })
const EVERY = { protocol: null, port: null, endPort: null }

test('CiliumNetworkPolicy: the whole form', async () => {
  const text = `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: web}
spec:
  description: any
  labels: [{key: a, source: k8s, value: b}]
  endpointSelector: {matchLabels: {"k8s:app": web, "any:tier": a, team: x}}
  ingress:
  - fromEndpoints: [{matchLabels: {app: client}}]
    toPorts: [{ports: [{port: "80", protocol: TCP}]}]
  ingressDeny:
  - fromEntities: [world]
status: {conditions: []}
`
  const ports = [{ protocol: 'TCP', port: 80, endPort: null }]
  assert.deepEqual(await parsePolicies(text, 'yaml'), [
    {
      kind: 'CiliumNetworkPolicy',
      namespace: 'default',
      name: 'web',
      document: 1,
      subject: [inOne('app', 'web'), inOne('tier', 'a'), inOne('team', 'x')],
      ingress: {
        allow: [{ path: 'spec.ingress[0]', peers: [pods([inOne('app', 'client')])], ports, unknown: null }],
        deny: [{ path: 'spec.ingressDeny[0]', peers: [{ kind: 'world' }], ports: null, unknown: null }],
      },
      egress: null,
    },
  ])
})

test('CiliumNetworkPolicy: spec and specs', async () => {
  const spec = { endpointSelector: {}, ingress: [{}] }
  const pathsOf = (all: readonly Policy[]) => all.map(({ name, ingress }) => [name, ingress!.allow[0]!.path])
  assert.deepEqual(pathsOf(await parse({ specs: [spec, spec] })), [
    ['one', 'specs[0].ingress[0]'],
    ['one', 'specs[1].ingress[0]'],
  ])
  assert.deepEqual(pathsOf(await parse({ spec, specs: [spec] })), [
    ['one', 'spec.ingress[0]'],
    ['one', 'specs[0].ingress[0]'],
  ])
  const list = { apiVersion: 'v1', kind: 'List', items: [policy({ spec }), policy({ specs: [spec, spec] })] }
  assert.deepEqual(
    (await parsePolicies(JSON.stringify(list), 'json')).map(({ ingress }) => ingress!.allow[0]!.path),
    ['items[0].spec.ingress[0]', 'items[1].specs[0].ingress[0]', 'items[1].specs[1].ingress[0]'],
  )
  assert.equal((await parse({ specs: Array(MAX_POLICIES).fill(spec) })).length, MAX_POLICIES)
  const rows: [object, string][] = [
    [{}, 'expected spec or specs'],
    [{ spec: null, specs: [] }, 'expected spec or specs'],
    [{ specs: {} }, 'specs: expected a list'],
    [{ specs: [spec, { ingress: [] }] }, 'specs[1].endpointSelector: expected a selector'],
    [{ specs: Array(MAX_POLICIES + 1).fill(spec) }, 'expected at most 500 policies'],
    [{ spec, rules: [] }, 'rules: unknown field, expected one of apiVersion, kind, metadata, spec, status, specs'],
  ]
  await assertEach(rows, async ([fields, message]) => assert.equal(await refusal(fields), `document 1: ${message}`))
})

test('CiliumNetworkPolicy: directions', async () => {
  const rows: [object, boolean, boolean][] = [
    [{ ingress: [{}] }, true, false],
    [{ egress: [{}] }, false, true],
    [{ ingressDeny: [{}] }, true, false],
    [{ egressDeny: [{}] }, false, true],
    // "If omitted or empty, this rule does not apply".
    [{ ingress: [], egress: [] }, false, false],
    [{ ingress: [], enableDefaultDeny: { ingress: true, egress: true } }, true, true],
    [{ ingress: [], egress: [{}], enableDefaultDeny: { ingress: false } }, false, true],
    [{ ingress: [{}], enableDefaultDeny: {} }, true, false],
  ]
  await assertEach(rows, async ([spec, isIngress, isEgress]) => {
    const { ingress, egress } = await parsed(spec)
    assert.deepEqual([ingress !== null, egress !== null], [isIngress, isEgress], JSON.stringify(spec))
  })
  await refusesSpecs([
    [{}, 'spec: expected one of ingress, ingressDeny, egress, egressDeny'],
    [{ ingress: {} }, 'spec.ingress: expected a list'],
    [{ ingress: [{}], enableDefaultDeny: { ingress: 'no' } }, 'spec.enableDefaultDeny.ingress: expected true or false'],
    [
      { ingress: [], nodeSelector: {} },
      'spec.nodeSelector: expected endpointSelector: only CiliumClusterwideNetworkPolicy selects nodes',
    ],
    [{ ingress: [], endpointSelector: null }, 'spec.endpointSelector: expected a selector'],
  ])
  assert.match(
    await refusal({ spec: { endpointSelector: {}, ingres: [] } }),
    /spec\.ingres: unknown field, expected one/,
  )
})

test('CiliumNetworkPolicy: rules without default deny isolate nothing', async () => {
  const rules = { ingress: [{ fromEntities: ['all'] }], ingressDeny: [{ fromEntities: ['world'] }] }
  const { ingress } = await parsed({ ...rules, enableDefaultDeny: { ingress: false } })
  const expected: Direction = {
    allow: [{ path: 'spec.ingress[0]', peers: [{ kind: 'all' }], ports: null, unknown: null }],
    deny: [{ path: 'spec.ingressDeny[0]', peers: [{ kind: 'world' }], ports: null, unknown: null }],
  }
  assert.deepEqual(ingress, { ...expected, isWithoutDefaultDeny: true })
})

test('CiliumNetworkPolicy: the namespace of the selected pods', async () => {
  const ofKey = (key: string, operator: string, values?: string[]) => ({
    ingress: [],
    endpointSelector: { matchLabels: { app: 'a' }, matchExpressions: [{ key, operator, values }] },
  })
  const key = 'k8s:io.kubernetes.pod.namespace'
  for (const spec of [ofKey(key, 'In', ['x', 'shop']), ofKey(key, 'NotIn', ['x']), ofKey(key, 'Exists')]) {
    assert.deepEqual((await parsed(spec)).subject, [inOne('app', 'a')])
  }
  const here = 'spec.endpointSelector: expected pods of shop, the namespace of the policy'
  const labels = 'spec.endpointSelector: expected labels of pods'
  await refusesSpecs([
    [ofKey(key, 'In', ['x']), here],
    [ofKey('io.kubernetes.pod.namespace', 'NotIn', ['shop']), here],
    [ofKey(key, 'DoesNotExist'), here],
    [ofKey('io.cilium.k8s.namespace.labels.a', 'Exists'), `${labels}: those of namespaces are not known`],
    [
      ofKey('io.cilium.k8s.policy.serviceaccount', 'Exists'),
      `${labels}: service accounts and names of clusters are not known`,
    ],
    [ofKey('reserved:init', 'Exists'), `${labels}: Cilium's reserved labels are not known`],
  ])
})

test('CiliumNetworkPolicy: endpoints', async () => {
  const peer = async (matchLabels: object, matchExpressions: object[] = []) =>
    (await peersOf({ toEndpoints: [{ matchLabels, matchExpressions }] }))![0]
  const app = inOne('app', 'a')
  const shop = inOne(NAMESPACE_NAME, 'other')
  const unknown = (reason: string) => ({ kind: 'unknown', reason })
  const rows: [object, object][] = [
    [{}, pods([])],
    [{ app: 'a' }, pods([app])],
    [{ 'k8s:app': 'a' }, pods([app])],
    [{ 'any:example.com/app': 'a' }, pods([inOne('example.com/app', 'a')])],
    [{ app: 'a', 'k8s:io.kubernetes.pod.namespace': 'other' }, pods([app], [shop])],
    [{ 'io.kubernetes.pod.namespace': 'other' }, pods([], [shop])],
    [{ 'io.cilium.k8s.namespace.labels.team': 'x', app: 'a' }, pods([app], [inOne('team', 'x')])],
    [{ 'k8s:io.cilium.k8s.namespace.labels.example.com/team': 'x' }, pods([], [inOne('example.com/team', 'x')])],
    [{ [`k8s:io.cilium.k8s.namespace.labels.${NAMESPACE_NAME}`]: 'other' }, pods([], [shop])],
    [{ 'reserved:host': '' }, unknown("Cilium's reserved labels are not known")],
    [{ 'io.cilium.k8s.policy.cluster': 'x' }, unknown('service accounts and names of clusters are not known')],
    [{ 'container:app': 'a' }, unknown('labels of the source container are not known')],
  ]
  await assertEach(rows, async ([labels, expected]) =>
    assert.deepEqual(await peer(labels), expected, JSON.stringify(labels)),
  )
  const exists = { key: 'k8s:io.kubernetes.pod.namespace', operator: 'Exists' }
  assert.deepEqual(await peer({}, [exists]), pods([], [{ key: NAMESPACE_NAME, operator: 'Exists', values: [] }]))
  const at = 'spec.egress[0].toEndpoints[0]'
  const key = 'expected a label key such as app or example.com/app'
  const refused = (selector: unknown, message: string) =>
    [{ egress: [{ toEndpoints: [selector] }] }, `${at}${message}`] as const
  await refusesSpecs([
    refused(null, ': expected an object'),
    refused({ matchLabels: { 'k8s:': 'a' } }, `.matchLabels["k8s:"]: ${key}`),
    refused({ matchLabels: { ':a': 'a' } }, `.matchLabels[":a"]: ${key}`),
    refused(
      { matchLabels: { 'io.cilium.k8s.namespace.labels.': 'a' } },
      `.matchLabels["io.cilium.k8s.namespace.labels."]: ${key}`,
    ),
    refused(
      { matchExpressions: [{ key: 'k8s:a', operator: 'In' }] },
      '.matchExpressions[0].values: expected a value at least: the operator is In',
    ),
  ])
})

test('CiliumNetworkPolicy: labels that Cilium ignores by default may select a pod or not', async () => {
  const reason = 'Cilium ignores some labels, such as pod-template-hash, unless it is configured otherwise'
  const unknown = [{ kind: 'unknown', reason }]
  for (const key of ['pod-template-hash', 'k8s:statefulset.kubernetes.io/pod-name', 'kubernetes.io/x'])
    assert.deepEqual(await peersOf({ toEndpoints: [{ matchLabels: { app: 'a', [key]: 'x' } }] }), unknown, key)
  for (const key of ['app.kubernetes.io/name', 'k8s-app', 'k8s:io.kubernetes.pod.namespace'])
    assert.notDeepEqual(await peersOf({ toEndpoints: [{ matchLabels: { [key]: 'x' } }] }), unknown, key)

  const endpointSelector = { matchLabels: { app: 'web', 'pod-template-hash': 'x' } }
  const one = await parsed({ endpointSelector, ingress: [{ fromEntities: ['all'] }], egress: [{}] })
  assert.deepEqual(one.subject, [inOne('app', 'web')])
  const podOf = (app: string): PodEnd => ({
    ...{ type: 'pod', namespace: 'shop', namespaceLabels: null, labels: { app, 'pod-template-hash': 'x' } },
    ...{ ips: [], namedPorts: {}, isHostNetwork: false },
  })
  const verdict = (from: string, to: string) =>
    judge([one], { from: podOf(from), to: podOf(to), port: 80, protocol: 'TCP' }).verdict
  const verdicts = [verdict('web', 'api'), verdict('api', 'web'), verdict('api', 'api')]
  assert.deepEqual(verdicts, ['unknown', 'unknown', 'allowed'])
  const open = { endpointSelector, enableDefaultDeny: { ingress: false }, ingress: [{ fromEntities: ['all'] }] }
  const { ingress } = await parsed(open)
  assert.equal(ingress!.isWithoutDefaultDeny, true, 'whichever pods it selects, it isolates none')
})

test('CiliumNetworkPolicy: blocks', async () => {
  assert.deepEqual(await peersOf({ toCIDR: ['10.0.0.1', '10.1.2.3/8', '2001:DB8::1', '::/0'] }), [
    block('10.0.0.1/32'),
    block('10.0.0.0/8'),
    block('2001:db8::1/128'),
    block('::/0'),
  ])
  const set = [{ cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.0.0.0/8'] }, { cidr: '192.0.2.0/24' }]
  assert.deepEqual(await peersOf({ toCIDRSet: set }), [
    block('10.0.0.0/8', '10.1.0.0/16', '10.0.0.0/8'),
    block('192.0.2.0/24'),
  ])
  const group = { kind: 'unknown', reason: 'the addresses of a CiliumCIDRGroup are not known' }
  const groups = [{ cidrGroupRef: 'a' }, { cidrGroupSelector: { matchLabels: { a: 'b' } }, except: ['10.0.0.0/8'] }]
  assert.deepEqual(await peersOf({ toCIDRSet: groups }), [group, group])
  const cidr = 'expected a CIDR such as 10.0.0.0/8'
  const either = 'expected an address or a CIDR such as 10.0.0.0/8'
  const one = 'expected one of cidr, cidrGroupRef, cidrGroupSelector'
  await refusesSpecs([
    ...['', 'a', '10.0.0', '10.0.0.0/33', '010.0.0.1', '::ffff:10.0.0.1'].map(
      (text) => [{ egress: [{ toCIDR: [text] }] }, `spec.egress[0].toCIDR[0]: ${either}`] as const,
    ),
    [
      { egress: [{ toCIDR: [1] }] },
      'spec.egress[0].toCIDR[0]: expected a string: numbers, and words such as yes, n and off, need quotes',
    ],
    [{ egress: [{ toCIDRSet: [{ cidr: '10.0.0.1' }] }] }, `spec.egress[0].toCIDRSet[0].cidr: ${cidr}`],
    [{ egress: [{ toCIDRSet: [{}] }] }, `spec.egress[0].toCIDRSet[0]: ${one}`],
    [{ egress: [{ toCIDRSet: [{ cidr: '10.0.0.0/8', cidrGroupRef: 'a' }] }] }, `spec.egress[0].toCIDRSet[0]: ${one}`],
    [
      { egress: [{ toCIDRSet: [{ cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] }] }] },
      'spec.egress[0].toCIDRSet[0].except[0]: expected a part of 10.0.0.0/8',
    ],
    [
      { egress: [{ toCIDRSet: [{ cidr: '10.0.0.0/8', except: ['x'] }] }] },
      `spec.egress[0].toCIDRSet[0].except[0]: ${cidr}`,
    ],
  ])
})

test('CiliumNetworkPolicy: entities', async () => {
  const kinds = async (...toEntities: string[]) => (await peersOf({ toEntities }))!.map(({ kind }) => kind)
  assert.deepEqual(await kinds('world', 'cluster', 'all'), ['world', 'cluster', 'all'])
  assert.deepEqual(await kinds('remote-node', 'host'), ['nodes'])
  assert.deepEqual(await kinds('none'), [])
  const others = [
    'host',
    'remote-node',
    'kube-apiserver',
    'ingress',
    'health',
    'init',
    'unmanaged',
    'world-ipv4',
    'world-ipv6',
  ]
  await assertEach(others, async (one) => {
    const [peer, ...more] = (await peersOf({ toEntities: [one] }))!
    assert.deepEqual([peer!.kind, more], ['unknown', []])
    assert.ok(peer?.kind === 'unknown' && peer.reason.length > 0)
  })
  assert.match(
    await refusal({ spec: { endpointSelector: {}, egress: [{ toEntities: ['World'] }] } }),
    /toEntities\[0\]: expected one of world, cluster, all, host/,
  )
})

test('CiliumNetworkPolicy: peers of which cannot be told what they match', async () => {
  const rows: ['ingress' | 'egress', object][] = [
    ['ingress', { fromNodes: [{ matchLabels: { a: 'b' } }] }],
    ['ingress', { fromGroups: [{ aws: { securityGroupsIds: ['sg'], labels: { a: 'b' } } }] }],
    ['egress', { toNodes: [{}] }],
    ['egress', { toGroups: [{ aws: { region: 'x' } }] }],
    [
      'egress',
      { toServices: [{ k8sService: { serviceName: 'a', namespace: 'b' } }, { k8sServiceSelector: { selector: {} } }] },
    ],
    ['egress', { toFQDNs: [{ matchName: 'a.example' }, { matchPattern: '*.example' }] }],
  ]
  await assertEach(rows, async ([section, rule]) => {
    const [one] = (await parsed({ [section]: [rule] }))[section]!.allow
    assert.deepEqual(
      one!.peers!.map(({ kind }: Peer) => kind),
      ['unknown'],
      JSON.stringify(rule),
    )
    assert.equal(one!.ports, null)
  })
  await refusesSpecs([
    [
      { egress: [{ toFQDNs: [{ name: 'a' }] }] },
      'spec.egress[0].toFQDNs[0].name: unknown field, expected one of matchName, matchPattern',
    ],
  ])
  for (const spec of [
    { egressDeny: [{ toFQDNs: [] }] },
    { ingress: [{ toEndpoints: [] }] },
    { ingress: [{ toFQDNs: [] }] },
  ]) {
    assert.match(await refusal({ spec: { endpointSelector: {}, ...spec } }), /to(FQDNs|Endpoints): unknown field/)
  }
})

test('CiliumNetworkPolicy: no peers, everyone, and fields that exclude each other', async () => {
  const toPorts = [{ ports: [{ port: '80' }] }]
  const rows: [object, unknown][] = [
    [{}, []],
    [{ toPorts: [] }, []],
    [{ toPorts }, null],
    [{ icmps: [{ fields: [{ type: 8 }] }] }, null],
    ...['toEndpoints', 'toCIDR', 'toCIDRSet', 'toEntities', 'toNodes'].flatMap((field): [object, unknown][] => [
      [{ [field]: [] }, []],
      [{ [field]: [], toPorts }, []],
      [{ [field]: null, toPorts }, null],
    ]),
    ...['toFQDNs', 'toServices', 'toGroups'].map((field): [object, unknown] => [{ [field]: [], toPorts }, null]),
    [{ toEndpoints: [], toEntities: ['all'] }, []],
  ]
  await assertEach(rows, async ([rule, peers]) => assert.deepEqual(await peersOf(rule), peers, JSON.stringify(rule)))
  await refusesSpecs([
    [
      { egress: [{ toEndpoints: [{}], toCIDR: ['10.0.0.1'] }] },
      'spec.egress[0]: expected only one of toEndpoints, toCIDR',
    ],
    [
      { ingress: [{}, { fromEntities: ['all'], fromCIDRSet: [{ cidr: '::/0' }] }] },
      'spec.ingress[1]: expected only one of fromCIDRSet, fromEntities',
    ],
    [
      { egress: [{ toPorts, icmps: [{ fields: [{ type: 8 }] }] }] },
      'spec.egress[0].icmps: expected no icmps beside toPorts',
    ],
  ])
})

test('CiliumNetworkPolicy: ports', async () => {
  const portsOf = async (...ports: object[]) => (await egressOf({ toPorts: [{ ports }] }))[0]!.ports
  const range = (protocol: string | null, port: number | string | null, endPort: number | null = null) => ({
    protocol,
    port,
    endPort,
  })
  const rows: [object, object[]][] = [
    [{ port: '80' }, [range(null, 80)]],
    [{ port: '80', protocol: 'ANY' }, [range(null, 80)]],
    [{ port: '80', protocol: 'UDP' }, [range('UDP', 80)]],
    [{ port: '65535', protocol: 'SCTP' }, [range('SCTP', 65_535)]],
    [{ port: '80', endPort: 90 }, [range(null, 80, 90)]],
    [{ port: '80', endPort: 0 }, [range(null, 80)]],
    [{ port: '0' }, [EVERY]],
    [{ port: '0', protocol: 'TCP' }, [range('TCP', null)]],
    [{ port: 'HTTP' }, [range(null, 'http')]],
    [{ port: 'http', endPort: 90 }, [range(null, 'http')]],
    [{ port: '8', protocol: 'ICMP' }, [range('ICMP', null)]],
    ...['ICMPV6', 'ICMPv6'].map((protocol): [object, object[]] => [{ port: '0', protocol }, [range('ICMPV6', null)]]),
    ...['VRRP', 'IGMP'].map((protocol): [object, object[]] => [{ port: '0', protocol }, [range('OTHER', null)]]),
  ]
  await assertEach(rows, async ([port, expected]) =>
    assert.deepEqual(await portsOf(port), expected, JSON.stringify(port)),
  )
  const at = 'spec.egress[0].toPorts[0].ports[0]'
  const refused = (port: unknown, message: string) =>
    [{ egress: [{ toPorts: [{ ports: [port] }] }] }, `${at}${message}`] as const
  const rule = `expected "0" to "65535", or a port name: at most 15 lower-case letters, digits and '-', with a letter`
  await refusesSpecs([
    ...['', '65536', '080', '-1', '80-90', 'a_b', 'a'.repeat(16)].map((port) => refused({ port }, `.port: ${rule}`)),
    refused({ port: 80 }, '.port: expected a string: numbers, and words such as yes, n and off, need quotes'),
    refused({}, '.port: expected a string'),
    refused({ port: '80', endPort: 79 }, '.endPort: expected at least port'),
    refused({ port: '80', endPort: 65_536 }, '.endPort: expected a port, 0 to 65535'),
    refused({ port: '0', endPort: 80 }, '.endPort: expected no endPort: port is 0'),
    [
      { egress: [{ toPorts: [{ ports: Array(41).fill({ port: '1' }) }] }] },
      'spec.egress[0].toPorts[0].ports: expected at most 40 members',
    ],
  ])
  assert.match(
    await refusal({
      spec: { endpointSelector: {}, egress: [{ toPorts: [{ ports: [{ port: '1', protocol: 'tcp' }] }] }] },
    }),
    /protocol: expected one of TCP, UDP, SCTP, ANY/,
  )
})

test('CiliumNetworkPolicy: ports of members are taken together, except those with rules of layer 7', async () => {
  const on = (port: string, fields: object = {}) => ({ ports: [{ port, protocol: 'TCP' }], ...fields })
  const tls = { secret: { name: 'a' } }
  const toPorts = [
    on('1'),
    on('2', { rules: { http: [{ method: 'GET' }] } }),
    on('3', { rules: {}, serverNames: [] }),
    on('4', { serverNames: ['a.example'] }),
    on('5', { rules: { dns: [{ matchPattern: '*' }] } }),
    on('6', { rules: { kafka: [{ role: 'produce' }] } }),
    on('7', { rules: { l7proto: 'a', l7: [{ a: 'b' }] } }),
    on('8', { listener: { envoyConfig: { name: 'a' }, name: 'b' } }),
    on('9', { terminatingTLS: tls, originatingTLS: tls }),
  ]
  const rules = await egressOf({ toEntities: ['all'], toPorts })
  const shown = rules.map(({ path, ports, unknown }) => [path, ports!.map(({ port }) => port), unknown])
  assert.deepEqual(shown, [
    ['spec.egress[0]', [1, 3], null],
    ...[1, 3, 4, 5, 6, 7, 8].map((i) => [`spec.egress[0].toPorts[${i}]`, [i + 1], 'rules of layer 7']),
  ])
  for (const { peers } of rules) assert.deepEqual(peers, [{ kind: 'all' }])
  const reason = 'Cilium does not say what no ports mean'
  assert.deepEqual(await egressOf({ toPorts: [{}] }), [
    { path: 'spec.egress[0].toPorts[0]', peers: null, ports: [EVERY], unknown: reason },
  ])
  await refusesSpecs([
    [
      { egress: [{ toPorts: [on('1', { rules: { ftp: [] } })] }] },
      'spec.egress[0].toPorts[0].rules.ftp: unknown field, expected one of http, kafka, dns, l7proto, l7',
    ],
    [
      { egressDeny: [{ toPorts: [on('1', { rules: {} })] }] },
      'spec.egressDeny[0].toPorts[0].rules: unknown field, expected ports',
    ],
  ])
})

test('CiliumNetworkPolicy: ICMP, authentication and requirements', async () => {
  const icmps = [{ fields: [{ family: 'IPv6', type: 'EchoRequest' }, { type: 8 }, { type: '0' }] }]
  assert.deepEqual(await egressOf({ toEntities: ['world'], icmps }), [
    {
      ...{ path: 'spec.egress[0]', peers: [{ kind: 'world' }], unknown: null },
      ports: ['ICMPV6', 'ICMP', 'ICMP'].map((protocol) => ({ protocol, port: null, endPort: null })),
    },
  ])
  const unknownOf = async (mode: string) =>
    (await egressOf({ toEntities: ['all'], authentication: { mode } }))[0]!.unknown
  assert.equal(await unknownOf('required'), 'authentication of the peer')
  assert.equal(await unknownOf('test-always-fail'), 'authentication of the peer')
  assert.equal(await unknownOf('disabled'), null)
  const requires = { fromRequires: [{ matchLabels: { team: 'a' } }] }
  const { ingress } = await parsed({
    ingress: [requires, { fromEndpoints: [{}] }],
    ingressDeny: [{ fromEndpoints: [{}] }],
  })
  assert.deepEqual(
    ingress!.allow.map(({ peers, unknown }) => [peers, unknown]),
    [
      [[], 'fromRequires is not evaluated'],
      [[pods([])], 'fromRequires is not evaluated'],
    ],
  )
  assert.equal(ingress!.deny[0]!.unknown, null)
  await refusesSpecs([
    [
      { egress: [{ authentication: {} }] },
      'spec.egress[0].authentication.mode: expected one of disabled, required, test-always-fail',
    ],
    [
      { egress: [{ icmps: [{ fields: [{ type: 256 }] }] }] },
      'spec.egress[0].icmps[0].fields[0].type: expected a type of ICMP: 0 to 255, or a name',
    ],
    [
      { egress: [{ icmps: [{ fields: [{ type: 1, family: 'ipv4' }] }] }] },
      'spec.egress[0].icmps[0].fields[0].family: expected one of IPv4, IPv6',
    ],
  ])
  assert.match(
    await refusal({ spec: { endpointSelector: {}, egressDeny: [{ authentication: { mode: 'disabled' } }] } }),
    /authentication: unknown field/,
  )
})

test('CiliumNetworkPolicy: a long list of addresses', async () => {
  const toCIDR = Array.from({ length: 60_000 }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  assert.equal((await peersOf({ toCIDR }))!.length, toCIDR.length)
})
