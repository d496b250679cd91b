import assert from 'node:assert/strict'
import test from 'node:test'
import { HttpError } from '../../lib/errors.ts'
import { MAX_POLICIES, parsePolicies } from '../../lib/policies/parse.ts'
import type { Policy } from '../../lib/policies/policy.ts'
import { assertEach } from '../support/assert-each.ts'

const policy = (spec: unknown, metadata: unknown = { name: 'one' }) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata,
  spec,
})

const parse = (value: unknown) => parsePolicies(JSON.stringify(value), 'json')

async function parsed(spec: unknown): Promise<Policy> {
  const [one, ...others] = await parse(policy(spec))
  assert.deepEqual(others, [])
  return one!
}

/** The message of the 400. */
async function refusal(parsing: Promise<unknown>): Promise<string> {
  const error = await parsing.then(
    () => assert.fail('not refused'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof HttpError, String(error))
  assert.equal(error.status, 400, error.message)
  return error.message
}

/** Each row is a spec with what its message must be, without the document. */
const refusesSpecs = (rows: readonly (readonly [unknown, string])[]) =>
  assertEach(rows, async ([spec, message]) => {
    assert.equal(await refusal(parse(policy(spec))), `document 1: ${message}`)
  })

const STRING = 'expected a string: numbers, and words such as yes, n and off, need quotes'

const ingressOf = async (rule: unknown) => (await parsed({ ingress: [rule] })).ingress!.allow[0]!
const peersOf = async (...from: unknown[]) => (await ingressOf({ from })).peers
const portsOf = async (...ports: unknown[]) => (await ingressOf({ ports })).ports
const inOne = (key: string, value: string) => ({ key, operator: 'In', values: [value] })

test('NetworkPolicy: the whole form', async () => {
  const text = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: web
  namespace: shop
spec:
  podSelector:
    matchLabels: {app: web}
    matchExpressions:
    - {key: tier, operator: NotIn, values: [a, b]}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - podSelector: {matchLabels: {app: client}}
    ports:
    - {port: 80}
`
  assert.deepEqual(await parsePolicies(text, 'yaml'), [
    {
      kind: 'NetworkPolicy',
      namespace: 'shop',
      name: 'web',
      document: 1,
      subject: [inOne('app', 'web'), { key: 'tier', operator: 'NotIn', values: ['a', 'b'] }],
      ingress: {
        allow: [
          {
            path: 'spec.ingress[0]',
            peers: [{ kind: 'pods', namespaces: null, pods: [inOne('app', 'client')] }],
            ports: [{ protocol: 'TCP', port: 80, endPort: null }],
            unknown: null,
          },
        ],
        deny: [],
      },
      egress: { allow: [], deny: [] },
    },
  ])
})

test('NetworkPolicy: directions', async () => {
  const rows = [
    [{}, true, false],
    [{ policyTypes: [] }, true, false],
    [{ egress: [] }, true, false],
    [{ egress: null }, true, false],
    [{ egress: [{}] }, true, true],
    [{ ingress: [{}] }, true, false],
    [{ policyTypes: ['Egress'] }, false, true],
    [{ policyTypes: ['Egress'], ingress: [{}] }, false, true],
    [{ policyTypes: ['Ingress'], egress: [{}] }, true, false],
    [{ policyTypes: ['Ingress', 'Egress'] }, true, true],
  ] as const
  await assertEach(rows, async ([spec, isIngress, isEgress]) => {
    const { ingress, egress } = await parsed(spec)
    assert.deepEqual([ingress !== null, egress !== null], [isIngress, isEgress], JSON.stringify(spec))
  })
  await refusesSpecs([
    [{ policyTypes: ['ingress'] }, 'spec.policyTypes[0]: expected one of Ingress, Egress'],
    [{ policyTypes: ['Ingress', 'Egress', 'Egress'] }, 'spec.policyTypes: expected at most 2 members'],
    [
      { policyTypes: ['Ingress'], egress: [{ ports: [{ port: 0 }] }] },
      'spec.egress[0].ports[0].port: expected a port, 1 to 65535',
    ],
  ])
})

test('NetworkPolicy: everyone and every port', async () => {
  for (const rule of [{}, { from: [], ports: [] }, { from: null, ports: null }]) {
    assert.deepEqual(await ingressOf(rule), { path: 'spec.ingress[0]', peers: null, ports: null, unknown: null })
  }
  const { egress } = await parsed({ egress: [{ to: [] }, { to: [{ podSelector: {} }] }] })
  assert.deepEqual(
    egress!.allow.map(({ path, peers }) => [path, peers]),
    [
      ['spec.egress[0]', null],
      ['spec.egress[1]', [{ kind: 'pods', namespaces: null, pods: [] }]],
    ],
  )
})

test('NetworkPolicy: peers', async () => {
  const app = { matchLabels: { app: 'a' } }
  assert.deepEqual(await peersOf({ podSelector: app }, { podSelector: {} }, { namespaceSelector: app }), [
    { kind: 'pods', namespaces: null, pods: [inOne('app', 'a')] },
    { kind: 'pods', namespaces: null, pods: [] },
    { kind: 'pods', namespaces: [inOne('app', 'a')], pods: [] },
  ])
  assert.deepEqual(await peersOf({ namespaceSelector: {} }, { namespaceSelector: {}, podSelector: app }), [
    { kind: 'pods', namespaces: [], pods: [] },
    { kind: 'pods', namespaces: [], pods: [inOne('app', 'a')] },
  ])
  const at = 'spec.ingress[0].from[0]'
  const refused = (peer: unknown, message: string) => [{ ingress: [{ from: [peer] }] }, `${at}${message}`] as const
  await refusesSpecs([
    refused({}, ': expected podSelector, namespaceSelector or ipBlock'),
    refused(null, ': expected an object'),
    refused({ podSelector: null }, ': expected podSelector, namespaceSelector or ipBlock'),
    refused({ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }, ': expected no selector beside ipBlock'),
    refused({ pods: {} }, '.pods: unknown field, expected one of podSelector, namespaceSelector, ipBlock'),
    refused({ ipBlock: {} }, '.ipBlock.cidr: expected a string'),
    refused({ podSelector: [] }, '.podSelector: expected an object'),
  ])
})

test('NetworkPolicy: blocks', async () => {
  const block = async (cidr: string, ...except: string[]) => (await peersOf({ ipBlock: { cidr, except } }))![0]
  const expected = (cidr: string, ...except: string[]) => ({ kind: 'block', cidr, except, isForPods: true })
  assert.deepEqual(
    await block('10.0.0.0/8', '10.1.0.0/16', '10.0.0.0/9'),
    expected('10.0.0.0/8', '10.1.0.0/16', '10.0.0.0/9'),
  )
  assert.deepEqual(await block('10.1.2.3/8', '10.9.9.9/16'), expected('10.0.0.0/8', '10.9.0.0/16'), 'bits are cleared')
  assert.deepEqual(await block('0.0.0.0/0'), expected('0.0.0.0/0'))
  assert.deepEqual(await block('192.0.2.1/32'), expected('192.0.2.1/32'))
  assert.deepEqual(await block('::/0', '2001:DB8:0::/48'), expected('::/0', '2001:db8::/48'))
  assert.deepEqual(await block('2001:db8::1/128'), expected('2001:db8::1/128'))
  const cidrRule = 'expected a CIDR such as 10.0.0.0/8'
  const bad = ['', '10.0.0.0', '10.0.0.0/33', '10.0.0.0/08', '010.0.0.0/8', '10.0.0/8', '10.0.0.0/', '10.0.0.0/-1']
  const bad6 = ['::/129', '::ffff:10.0.0.0/104', 'fe80::%eth0/64', '10.0.0.0/8 ', 'a/8']
  await refusesSpecs([
    ...[...bad, ...bad6].map(
      (cidr) =>
        [
          { ingress: [{ from: [{ ipBlock: { cidr } }] }] },
          `spec.ingress[0].from[0].ipBlock.cidr: ${cidrRule}`,
        ] as const,
    ),
    ...['10.0.0.0/8', '0.0.0.0/0', '11.0.0.0/16', '::/16'].map(
      (except) =>
        [
          { egress: [{}, { to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', except] } }] }] },
          'spec.egress[1].to[0].ipBlock.except[1]: expected a part of 10.0.0.0/8',
        ] as const,
    ),
  ])
})

test('NetworkPolicy: ports', async () => {
  assert.deepEqual(
    await portsOf(
      {},
      { protocol: 'UDP' },
      { port: 1 },
      { port: 65_535, protocol: 'SCTP' },
      { port: 'http' },
      { port: 80, endPort: 80 },
    ),
    [
      { protocol: 'TCP', port: null, endPort: null },
      { protocol: 'UDP', port: null, endPort: null },
      { protocol: 'TCP', port: 1, endPort: null },
      { protocol: 'SCTP', port: 65_535, endPort: null },
      { protocol: 'TCP', port: 'http', endPort: null },
      { protocol: 'TCP', port: 80, endPort: 80 },
    ],
  )
  assert.deepEqual(await portsOf({ port: 'a23456789012345' }), [
    { protocol: 'TCP', port: 'a23456789012345', endPort: null },
  ])
  const refused = (port: unknown, message: string) =>
    [{ ingress: [{ ports: [port] }] }, `spec.ingress[0].ports[0]${message}`] as const
  const name = "expected a port name: at most 15 lower-case letters, digits and '-', with a letter"
  await refusesSpecs([
    ...[0, 65_536, -1, 1.5].map((port) => refused({ port }, '.port: expected a port, 1 to 65535')),
    refused({ port: true }, '.port: expected a number or a port name'),
    refused({ port: '80' }, '.port: expected 80 without quotes, or a port name'),
    ...['', 'HTTP', 'a--b', '-a', 'a-', 'a234567890123456', '1-2', 'a_b'].map((port) =>
      refused({ port }, `.port: ${name}`),
    ),
    refused({ port: 80, endPort: 79 }, '.endPort: expected at least port'),
    refused({ port: 80, endPort: 65_536 }, '.endPort: expected a port, 1 to 65535'),
    refused({ port: 'http', endPort: 80 }, '.endPort: expected no endPort: port is not a number'),
    refused({ endPort: 80 }, '.endPort: expected no endPort: port is not a number'),
    refused({ protocol: 'tcp' }, '.protocol: expected one of TCP, UDP, SCTP'),
    refused({ ports: 80 }, '.ports: unknown field, expected one of protocol, port, endPort'),
  ])
})

test('NetworkPolicy: selectors', async () => {
  const expressions = [
    { key: 'a', operator: 'Exists' },
    { key: 'example.com/b', operator: 'DoesNotExist', values: [] },
    { key: 'c', operator: 'In', values: ['', 'x_y.z-1'] },
  ]
  const { subject } = await parsed({ podSelector: { matchExpressions: expressions } })
  assert.deepEqual(subject, [
    { key: 'a', operator: 'Exists', values: [] },
    { key: 'example.com/b', operator: 'DoesNotExist', values: [] },
    { key: 'c', operator: 'In', values: ['', 'x_y.z-1'] },
  ])
  const long = 'a'.repeat(63)
  assert.deepEqual((await parsed({ podSelector: { matchLabels: { [long]: long } } })).subject, [inOne(long, long)])
  const key = 'expected a label key such as app or example.com/app'
  const value = "expected a label value: at most 63 letters, digits, '-', '_' and '.'"
  const expression = (one: unknown, message: string) =>
    [{ podSelector: { matchExpressions: [one] } }, `spec.podSelector.matchExpressions[0]${message}`] as const
  await refusesSpecs([
    ...['', '-a', 'a b', 'a/b/c', '/a', 'a/', 'Example.com/a', `${long}a`].map(
      (bad) =>
        [
          { podSelector: { matchLabels: { [bad]: 'x' } } },
          `spec.podSelector.matchLabels${/^\w+$/.test(bad) ? `.${bad}` : `["${bad}"]`}: ${key}`,
        ] as const,
    ),
    ...['-a', 'a b', `${long}a`, 'é'].map(
      (bad) => [{ podSelector: { matchLabels: { a: bad } } }, `spec.podSelector.matchLabels.a: ${value}`] as const,
    ),
    [
      { podSelector: { matchLabels: { 'example.com/a': 1 } } },
      `spec.podSelector.matchLabels["example.com/a"]: ${STRING}`,
    ],
    [{ podSelector: { matchLabels: ['a'] } }, 'spec.podSelector.matchLabels: expected an object'],
    [
      { podSelector: { app: 'a' } },
      'spec.podSelector.app: unknown field, expected one of matchLabels, matchExpressions',
    ],
    expression({ key: 'a', operator: 'In' }, '.values: expected a value at least: the operator is In'),
    expression(
      { key: 'a', operator: 'NotIn', values: [] },
      '.values: expected a value at least: the operator is NotIn',
    ),
    expression({ key: 'a', operator: 'Exists', values: ['b'] }, '.values: expected no values: the operator is Exists'),
    expression(
      { key: 'a', operator: 'DoesNotExist', values: ['b'] },
      '.values: expected no values: the operator is DoesNotExist',
    ),
    expression({ key: 'a', operator: 'Gt' }, '.operator: expected one of In, NotIn, Exists, DoesNotExist'),
    expression({ key: 'a b', operator: 'Exists' }, `.key: ${key}`),
    expression({ key: 'a', operator: 'In', values: ['b', '-'] }, `.values[1]: ${value}`),
    expression(
      { key: 'a', operator: 'In', values: Array(10_001).fill('a') },
      '.values: expected at most 10000 members',
    ),
  ])
})

test('a label key that is a property of objects is a key like others', async () => {
  const text = JSON.stringify(policy({ podSelector: { matchLabels: { constructor: 'a' } } }))
  assert.deepEqual((await parsePolicies(text, 'json'))[0]!.subject, [inOne('constructor', 'a')])
  const proto = text.replace('"constructor"', '"__proto__"')
  for (const format of ['json', 'yaml'] as const)
    assert.match(
      await refusal(parsePolicies(proto, format)),
      /spec\.podSelector\.matchLabels\.__proto__: expected a label key/,
    )
})

test('unknown fields and wrong types of a spec', () =>
  refusesSpecs([
    [undefined, 'spec: expected an object'],
    [[], 'spec: expected an object'],
    [{ ingres: [] }, 'spec.ingres: unknown field, expected one of podSelector, policyTypes, ingress, egress'],
    [{ ingress: {} }, 'spec.ingress: expected a list'],
    [{ ingress: [null] }, 'spec.ingress[0]: expected an object'],
    [{ ingress: [{ to: [] }] }, 'spec.ingress[0].to: unknown field, expected one of from, ports'],
    [{ egress: [{ from: [] }] }, 'spec.egress[0].from: unknown field, expected one of to, ports'],
    [{ ingress: [{}, { from: {} }] }, 'spec.ingress[1].from: expected a list'],
  ]))

test('metadata', async () => {
  const full = {
    name: 'a.b',
    namespace: 'shop',
    labels: { 'app.kubernetes.io/name': 'a' },
    annotations: { 'Example.com/a': 'any text', b: '' },
    uid: 'x',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: null,
    managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': {} } }],
    ownerReferences: [],
    finalizers: [],
    generateName: 'a-',
    selfLink: '',
    deletionTimestamp: null,
    deletionGracePeriodSeconds: 0,
  }
  const [one] = await parse({ ...policy({}, full), status: { conditions: [] } })
  assert.deepEqual([one!.namespace, one!.name], ['shop', 'a.b'])
  for (const namespace of [undefined, null, '']) {
    assert.equal((await parse(policy({}, { name: 'a', namespace })))[0]!.namespace, 'default')
  }
  const subdomain = "expected a DNS subdomain: lower-case letters, digits, '-' and '.', at most 253 characters"
  const label = "expected a DNS label: lower-case letters, digits and '-', at most 63 characters"
  const rows: [unknown, RegExp | string][] = [
    [null, 'metadata: expected an object'],
    [{}, 'metadata.name: expected a string'],
    ...['', 'A', 'a_b', 'a..b', '-a', 'a'.repeat(254)].map((name): [unknown, string] => [
      { name },
      `metadata.name: ${subdomain}`,
    ]),
    ...['A', 'a.b', 'a'.repeat(64)].map((namespace): [unknown, string] => [
      { name: 'a', namespace },
      `metadata.namespace: ${label}`,
    ]),
    [{ name: 'a', labels: { 'a b': '' } }, /metadata\.labels\["a b"\]: expected a label key/],
    [{ name: 'a', labels: { a: 'b c' } }, /metadata\.labels\.a: expected a label value/],
    [{ name: 'a', annotations: { a: 1 } }, /metadata\.annotations\.a: expected a string/],
    [{ name: 'a', nmespace: 'b' }, /metadata\.nmespace: unknown field/],
  ]
  await assertEach(rows, async ([metadata, message]) => {
    const text = await refusal(parse(policy({}, metadata)))
    if (typeof message === 'string') assert.equal(text, `document 1: ${message}`)
    else assert.match(text, message)
  })
})

test('kinds', async () => {
  const known = /NetworkPolicy \(networking\.k8s\.io\/v1\), CiliumNetworkPolicy \(cilium\.io\/v2\)/
  const rows: [object, RegExp][] = [
    [{ kind: 'CiliumClusterwideNetworkPolicy', apiVersion: 'cilium.io/v2' }, /CiliumClusterwideNetworkPolicy/],
    [{ kind: 'NetworkPolicy', apiVersion: 'extensions/v1beta1' }, /NetworkPolicy \(extensions\/v1beta1\) is not known/],
    [{ kind: 'CiliumNetworkPolicy', apiVersion: 'networking.k8s.io/v1' }, /is not known/],
    [{ kind: 'Deployment', apiVersion: 'apps/v1' }, /document 1: kind: Deployment/],
    [{ apiVersion: 'v1' }, /document 1: kind: expected one of/],
  ]
  await assertEach(rows, async ([object, message]) => {
    const text = await refusal(parse(object))
    assert.match(text, message)
    assert.match(text, known)
  })
  assert.match(await refusal(parse({ kind: 'NetworkPolicy' })), /apiVersion: expected a string/)
  assert.match(await refusal(parse({ ...policy({}), extra: 1 })), /document 1: extra: unknown field/)
  for (const value of [[], 'a', 1, null]) await refusal(parse(value))
})

test('lists', async () => {
  const items = [policy({ ingress: [{}] }, { name: 'a' }), policy({}, { name: 'b' })]
  const all = await parse({ apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items })
  assert.deepEqual(
    all.map(({ name, document }) => [name, document]),
    [
      ['a', 1],
      ['b', 1],
    ],
  )
  assert.equal(all[0]!.ingress!.allow[0]!.path, 'items[0].spec.ingress[0]')
  const bare = { metadata: { name: 'a' }, spec: {} }
  const listOf = (kind: string, apiVersion: string, ...items: unknown[]) => ({ kind, apiVersion, items })
  assert.equal((await parse(listOf('NetworkPolicyList', 'networking.k8s.io/v1', bare))).length, 1)
  const cilium = { metadata: { name: 'a' }, spec: { endpointSelector: {}, ingress: [] } }
  const [one] = await parse(listOf('CiliumNetworkPolicyList', 'cilium.io/v2', cilium))
  assert.equal(one!.kind, 'CiliumNetworkPolicy')
  const rows: [unknown, RegExp][] = [
    [listOf('List', 'v1', bare), /items\[0\]\.kind: expected one of/],
    [listOf('List', 'v1', listOf('List', 'v1')), /items\[0\]\.kind: List \(v1\) is not known/],
    [listOf('List', 'v1', policy({}), policy({ a: 1 })), /document 1: items\[1\]\.spec\.a: unknown field/],
    [listOf('List', 'v1', null), /items\[0\]: expected an object/],
    [{ kind: 'List', apiVersion: 'v1' }, /items: expected a list/],
    [listOf('List', 'v1'), /expected at least one policy/],
  ]
  await assertEach(rows, async ([list, message]) => assert.match(await refusal(parse(list)), message))
})

test('at most 500 policies, in one list or in many documents', async () => {
  const list = (count: number) => ({ apiVersion: 'v1', kind: 'List', items: Array(count).fill(policy({})) })
  const stream = (count: number) =>
    Array(count)
      .fill(JSON.stringify(policy({})))
      .join('\n---\n')
  assert.equal((await parse(list(MAX_POLICIES))).length, MAX_POLICIES)
  assert.equal((await parsePolicies(stream(MAX_POLICIES), 'yaml')).length, MAX_POLICIES)
  assert.match(await refusal(parse(list(MAX_POLICIES + 1))), /items: expected at most 500 policies/)
  assert.match(
    await refusal(parsePolicies(stream(MAX_POLICIES + 1), 'yaml')),
    /^document 501: expected at most 500 policies/,
  )
})

test('JSON', async () => {
  assert.equal((await parse(policy({}))).length, 1)
  const text = JSON.stringify(policy({}))
  const rows: [string, RegExp][] = [
    ['', /invalid JSON/],
    [text.slice(1), /invalid JSON/],
    [`${text}${text}`, /invalid JSON/],
    [text.replace('"kind"', '"kind":"a","kind"'), /"kind" is there twice/],
    [text.replace('"one"', '"a\\u0000"'), /U\+0000/],
    ['['.repeat(65) + ']'.repeat(65), /nested deeper than 64 levels/],
    ['['.repeat(100_000), /nested deeper/],
  ]
  await assertEach(rows, async ([json, message]) => assert.match(await refusal(parsePolicies(json, 'json')), message))
})
