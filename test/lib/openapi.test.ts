import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { z } from 'zod'
import { routes } from '../../handlers/router.ts'
import { access, declaredRoutes } from '../../lib/http/access.ts'
import { charge } from '../../lib/http/charge.ts'
import { naiveTime, wireTime } from '../../lib/http/request/fields.ts'
import { body, params, query } from '../../lib/http/request/validate.ts'
import { route } from '../../lib/http/route.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import { declarationOf, docOf, documentedAs } from '../../lib/openapi/declare.ts'
import { openApi } from '../../lib/openapi/index.ts'
import { operationId } from '../../lib/openapi/names.ts'
import { VERSION } from '../../lib/version.ts'
import { assertAllowed, document, validator } from '../support/contract.ts'
import { podPost, wholePodPost } from '../support/records.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const committed = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
const scopes = declaredRoutes(routes.flatMap((one) => one.routes))
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    path,
    operation: operation as Json,
  })),
)
const operation = (name: string) => operations.find((one) => one.name === name)!.operation
const statuses = (name: string) => Object.keys(operation(name).responses).map(Number)

test('openapi.json is what the routes declare: `npm run openapi` rewrites it', () => {
  assert.equal(committed, `${JSON.stringify(document, null, 2)}\n`)
})

test('the same routes give the same text, in any order', () => {
  assert.equal(JSON.stringify(openApi(routes.toReversed(), VERSION)), JSON.stringify(document))
})

test('its version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.deepEqual([VERSION, (document.info as Json).version], [version, version])
})

test('the document has every mounted route with its scope, and no other', () => {
  const told = Object.fromEntries(operations.map(({ name, operation }) => [name, operation['x-required-scope']]))
  assert.deepEqual(
    told,
    Object.fromEntries([...scopes].map(([name, scope]) => [name.replace(/:(\w+)/g, '{$1}'), scope])),
  )
})

/** The end of the path of the only route that writes and needs no body. */
/** POST routes that take no body. */
const WITHOUT_BODY = [
  'POST /seccomp/profiles/{namespace}/{kind}/{name}/reset',
  'POST /workloads/{namespace}/{kind}/{name}/export',
]
const hasNoBody = (name: string) => WITHOUT_BODY.includes(name.replace(/:(\w+)/g, '{$1}'))

/** Limits of bodies that differ from those of the core routes. */
const MAX_BYTES: Record<string, number> = {
  'POST /images/{digest}/vulnerabilities': 1_048_576,
  'POST /images/{digest}/sbom': 1_048_576,
  'POST /images/{digest}/attestation': 262_144,
  'POST /seccomp/profiles/{namespace}/{kind}/{name}/export': 1_048_576,
  'POST /runtime/capabilities': 4_194_304,
  'POST /runtime/coverage': 4_194_304,
  'POST /seccomp/denials': 4_194_304,
  'POST /networkpolicy/try': 1_048_576,
  'POST /vex': 1_048_576,
  'POST /runtime/executables': 8_388_608,
  'POST /pod/compute/batch': 16_777_216,
  'POST /pod/compute/history/batch': 16_777_216,
}

for (const { name, path, operation } of operations) {
  test(`${name} has a description, its needs and its answers`, () => {
    assert.match(operation.summary, /^[A-Z].*[^.]$/)
    assert.equal(operation.tags.length, 1)
    assert.ok((document.tags as Json[]).some((tag) => tag.name === operation.tags[0] && tag.description))
    assert.ok(operation.responses[200] && operation.responses[500])
    const isOpen = operation['x-required-scope'] === 'open'
    assert.deepEqual(operation.security, isOpen ? [] : [{ bearer: [] }])
    assert.equal(operation.responses[401] !== undefined && operation.responses[403] !== undefined, !isOpen)
    assert.ok(isOpen || operation.description.includes(`\`${operation['x-required-scope']}\``))
    const inPath = (operation.parameters ?? []).filter((one: Json) => one.in === 'path')
    assert.deepEqual(
      inPath.map((one: Json) => one.name),
      [...path.matchAll(/\{(\w+)\}/g)].map(([, one]) => one),
    )
    for (const one of operation.parameters ?? []) assert.ok(one.description && one.schema.type, one.name)
    for (const one of inPath) assert.equal(one.required, true)
    const hasBody = operation.requestBody !== undefined
    assert.equal(hasBody, /^(POST|PUT) /.test(name) && !hasNoBody(name))
    if (hasBody) {
      const maxBytes = MAX_BYTES[name] ?? MAX_CORE_BODY_BYTES
      assert.equal(operation.requestBody['x-max-bytes'], maxBytes)
      assert.ok(operation.requestBody.description.includes(` ${maxBytes} bytes`))
      for (const status of [400, 413, 415, 503]) assert.ok(operation.responses[status], String(status))
    }
  })
}

test('operations have unique names', () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const id of ids) assert.match(id, /^(get|post|put|delete)([A-Z][A-Za-z0-9]*)+$/)
  assert.equal(operationId('get', '/pod/list/{node}'), 'getPodListByNode')
  assert.equal(operationId('get', '/pod/ip/{ip}'), 'getPodByIp')
  assert.equal(operationId('put', '/a-b/c.json/{pod_uid}'), 'putABCJsonByPodUid')
})

test('every reference has a target, and every component is referenced', () => {
  const references = new Set([...committed.matchAll(/"\$ref": "([^"]+)"/g)].map(([, reference]) => reference!))
  for (const reference of references) {
    const target = reference
      .replace(/^#\//, '')
      .split('/')
      .reduce<Json>((at, key) => at?.[key], document)
    assert.ok(target, reference)
  }
  const { schemas, responses } = document.components
  for (const [kind, all] of Object.entries({ schemas, responses }))
    for (const name of Object.keys(all)) assert.ok(references.has(`#/components/${kind}/${name}`), name)
})

test('the document has the limits of the fields of a flow', () => {
  const { properties } = document.components.schemas.TrafficPost as Json
  const limitOf = (key: string) => properties[key].maxLength ?? properties[key].anyOf?.[0].maxLength
  assert.deepEqual([limitOf('uuid'), limitOf('pod_name'), limitOf('pod_ip'), limitOf('decision')], [128, 253, 128, 64])
  for (const key of Object.keys(properties))
    assert.equal(limitOf(key) === undefined, ['time_stamp', 'syn_retries'].includes(key), key)
})

test('statuses follow from the parts of a route', () => {
  assert.deepEqual(statuses('GET /pod/name/{name}'), [200, 400, 401, 403, 404, 431, 500, 503])
  assert.deepEqual(statuses('GET /pod/namespaces'), [200, 401, 403, 431, 500, 503])
  assert.deepEqual(statuses('POST /pod/spec'), [200, 400, 401, 403, 408, 413, 415, 431, 500, 503])
  assert.deepEqual(statuses('GET /health'), [200, 431, 500, 503])
  assert.deepEqual(statuses('GET /metrics'), [200, 431, 500])
  assert.deepEqual(statuses('GET /openapi.json'), [200, 401, 403, 431, 500])
})

test('parameters have the types and defaults that clients send', () => {
  const schemaOf = (name: string, parameter: string) =>
    operation(name).parameters.find((one: Json) => one.name === parameter).schema
  assert.deepEqual(schemaOf('GET /pod/traffic', 'limit'), { type: 'integer', default: 5000 })
  assert.deepEqual(schemaOf('GET /pod/info', 'include_dead'), { type: 'boolean', default: true })
  assert.equal(schemaOf('GET /pod/ip/{ip}', 'at').type, 'string')
})

test('the document has answers in several notations, headers of answers and optional bodies', () => {
  const path = '/seccomp/profiles/{namespace}/{kind}/{name}/export'
  for (const method of ['GET', 'POST']) {
    const { responses } = operation(`${method} ${path}`)
    assert.deepEqual(Object.keys(responses[200].content), ['application/yaml', 'application/json'])
    for (const status of [200, 409]) {
      const { headers } = responses[status]
      assert.deepEqual(Object.keys(headers), ['X-Kguardian-Capture-Level', 'X-Kguardian-Capture-Complete'])
      for (const { required, description, schema } of Object.values(headers) as Json[])
        assert.deepEqual([required, typeof description, schema.type], [true, 'string', 'string'])
    }
    assert.equal(responses[404].headers, undefined)
  }
  assert.equal(operation(`POST ${path}`).requestBody.required, false)
  assert.equal(operation('POST /pod/spec').requestBody.required, true)
})

/** Values with the verdict that both the zod schema of the route and the schema of the document must give. */
const EXAMPLES: Record<string, { bodies: [boolean, unknown][]; answers: [boolean, unknown][] }> = (() => {
  const T = '2024-05-01T10:00:00'
  const record = {
    ...{
      pod_name: 'a',
      pod_ip: '10.0.0.1',
      pod_namespace: null,
      pod_obj: { metadata: {} },
      time_stamp: T,
      node_name: 'n',
    },
    ...{
      is_dead: false,
      pod_identity: null,
      workload_selector_labels: { a: 'b' },
      pod_ips: [],
      workload_kind: null,
      workload_name: null,
    },
    ...{ capture_level: 'low', host_network: null, started_at: `${T}.123` },
  }
  const service = { svc_ip: '10.0.0.1', svc_name: null, svc_namespace: 'x', service_spec: {}, time_stamp: T }
  const flow = { uuid: 'u', time_stamp: `${T}.123456789`, pod_name: 'p'.repeat(253), syn_retries: 4 }
  const keys = [
    ...['uuid', 'pod_name', 'pod_namespace', 'pod_ip', 'pod_port', 'ip_protocol', 'traffic_type', 'traffic_in_out_ip'],
    ...[
      'traffic_in_out_port',
      'decision',
      'time_stamp',
      'peer_kind',
      'peer_namespace',
      'peer_name',
      'peer_uid',
      'peer_workload_kind',
    ],
    ...['peer_workload_name', 'peer_resolved_at', 'drop_cause', 'syn_retries'],
  ]
  const row = { ...Object.fromEntries(keys.map((key) => [key, null])), uuid: 'u', time_stamp: T }
  const syscalls = { pod_name: 'a', pod_namespace: '', syscalls: ['read'], arch: 'x86_64', time_stamp: T }
  const facts = { node_name: 'n', provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'dual', node_os: 'cos' }
  const flows: [boolean, unknown][] = [
    [true, flow],
    [true, { ...flow, syn_retries: null, pod_name: null, peer_kind: 'ignored' }],
    ...[
      { uuid: undefined },
      { uuid: 'u'.repeat(129) },
      { pod_name: 'p'.repeat(254) },
      { pod_port: 80 },
      { decision: 'd'.repeat(65) },
    ].map((fields): [boolean, unknown] => [false, { ...flow, ...fields }]),
    ...[
      { syn_retries: 1.5 },
      { syn_retries: 2 ** 53 },
      { time_stamp: `${T}Z` },
      { time_stamp: '2024-13-01T10:00:00' },
    ].map((fields): [boolean, unknown] => [false, { ...flow, ...fields }]),
    [false, null],
  ]
  const image = `sha256:${'a'.repeat(64)}`
  const payload = { schema_version: 1, image: { digest: image }, source: 'registry', scanned_at: `${T}.123456789Z` }
  const result = { schema_version: 1, digest: image, repository: 'r', checked_at: `${T}Z`, verdict: 'unsigned' }
  const executable = {
    ...{
      pod_namespace: 'n',
      pod_name: 'p',
      workload_kind: 'Deployment',
      workload_name: 'w',
      container_name: 'c',
      image_digest: image,
    },
    ...{ kind: 'exec', path: '/x', path_complete: true, source: 'ebpf', origin: 'image', first_seen: T, last_seen: T },
  }
  const capability = {
    ...{ pod_namespace: 'n', workload_kind: 'Deployment', workload_name: 'w', container_name: 'c' },
    ...{ capability: 'NET_ADMIN', granted: true, count: 1, first_seen: T, last_seen: T },
  }
  const heartbeat = {
    ...{
      pod_namespace: 'n',
      pod_name: 'p',
      workload_kind: 'Deployment',
      workload_name: 'w',
      container_name: 'c',
      container_id: 'c1',
    },
    ...{
      node_name: 'n',
      mode: 'full',
      exec_probe: true,
      lib_probe: true,
      start_mode: 'start',
      tracking_since: T,
      heartbeat_at: T,
      heartbeat_secs: 300,
    },
  }
  const denial = { podUid: 'u', podName: 'p', podNamespace: 'n', syscall: 's', action: 'a', count: 1 }
  const compute = {
    container_uid: 'u/c',
    pod_uid: 'u',
    pod_name: 'p',
    namespace: 'n',
    container: 'c',
    cpu: {},
    memory: { limit: null },
  }
  const badPayloads = [
    ...[
      { schema_version: 1.5 },
      { schema_version: undefined },
      { image: null },
      { image: {} },
      { source: 7 },
      { scanned_at: T },
      { scanned_at: 7 },
    ],
    ...[
      { observed_in: {} },
      { observed_in: [{ name: 1 }] },
      { scanner: 'x' },
      { sbom_trust: 1 },
      { image: { digest: image, platform_manifests: { a: 1 } } },
    ],
  ].map((fields): [boolean, unknown] => [false, { ...payload, ...fields }])
  const outcomes: [boolean, unknown][] = [
    [true, { status: 'stored', items: 2 }],
    [true, { status: 'unchanged' }],
    [true, { status: 'stale', stored_scanned_at: T }],
    [false, { status: 'stored' }],
    [false, { status: 'stored', items: -1 }],
    [false, { status: 'unchanged', items: 1 }],
    [false, { status: 'stale', stored_scanned_at: `${T}Z` }],
    [false, { status: 'rows wanted' }],
  ]
  const trial = {
    ...{ about: '', asOf: '2024-05-01T10:00:00', observedSince: null, labelsAsOf: null },
    ...{ evaluated: 0, allowed: 0, denied: 0, unknown: 0 },
    ...{ policies: [], deniedEdges: [], moreDenied: 0, unknownReasons: [] },
  }
  const put = { scope: { type: 'all' }, decision: 'accepted', by: 'a', why: 'b' }
  const decided = {
    ...{ id: 1, vulnerability: 'CVE-1', decision: 'accepted', justification: null, scope: { type: 'all' } },
    ...{ package: null, until: null, by: 'a', why: 'b', decidedAt: T, origin: null },
  }
  const vex = {
    ...{ status: 'stored', document: 'd', format: 'openvex', version: 1, storedVersion: 1, accepted: 0, ignored: 1 },
    statements: [
      {
        ...{ statement: 0, vulnerability: 'CVE-1', outcome: 'ignored', decisions: 0 },
        ignored: [{ reason: 'no_product', product: null }],
      },
    ],
  }
  return {
    'POST /images/:digest/vulnerabilities': {
      bodies: [
        [true, payload],
        [
          true,
          {
            ...payload,
            vulnerabilities: null,
            observed_in: null,
            sbom_sources: 'grype',
            db_updated_at: `${T}Z`,
            unknown: 1,
          },
        ],
        [
          true,
          {
            ...payload,
            vulnerabilities: [
              { id: 'x', package: { name: 'p' }, cvss: { nvd: { v3_score: 1.5 }, x: null }, score: 1, kev: true },
            ],
          },
        ],
        ...badPayloads,
        ...[
          { id: 'x' },
          { id: 'x', package: {} },
          { id: 'x', package: { name: 'p' }, cvss: { nvd: 1 } },
          { id: 'x', package: { name: 'p' }, score: '1' },
        ].map((finding): [boolean, unknown] => [false, { ...payload, vulnerabilities: [finding] }]),
        [false, { ...payload, vulnerabilities: Array(20_001).fill({ id: 'x', package: { name: 'p' } }) }],
      ],
      answers: outcomes,
    },
    'POST /images/:digest/sbom': {
      bodies: [
        [true, payload],
        [
          true,
          {
            ...payload,
            page: { set_id: 'x', index: 0, total: 2 },
            attestation: null,
            components: [{ name: 'a', licenses: ['MIT'], file_paths: null }],
          },
        ],
        ...badPayloads,
        ...[{}, { name: 1 }, { name: 'x', licenses: 'MIT' }, { name: 'x', version: 1 }].map(
          (component): [boolean, unknown] => [false, { ...payload, components: [component] }],
        ),
        [false, { ...payload, page: { set_id: 'x', index: 0.5, total: 2 } }],
        [false, { ...payload, attestation: { verified: 'no' } }],
      ],
      answers: [
        ...outcomes,
        [true, { status: 'duplicate_page', received: 1, total: 2 }],
        [false, { status: 'duplicate_page', received: 1 }],
      ],
    },
    'POST /images/:digest/attestation': {
      bodies: [
        [true, result],
        [
          true,
          {
            ...result,
            signatures: [{ format: 'f' }],
            attestations: [{ format: 'f', predicate_type: 'p' }],
            unknown: 1,
          },
        ],
        [true, { ...result, reason: null, signatures: null, attestations: null }],
        [
          true,
          {
            ...result,
            signatures: [{ format: 'f', verified: true, tlog_index: -7, integrated_time: `${T}Z`, detail: null }],
          },
        ],
        ...[
          { schema_version: 1.5 },
          { digest: undefined },
          { repository: 7 },
          { checked_at: T },
          { verdict: undefined },
          { reason: 7 },
        ].map((fields): [boolean, unknown] => [false, { ...result, ...fields }]),
        ...[{}, { format: 'f', verified: 'yes' }, { format: 'f', tlog_index: '7' }, { format: 'f', san: [] }, 'f'].map(
          (signature): [boolean, unknown] => [false, { ...result, signatures: [signature] }],
        ),
        [false, { ...result, attestations: [{ format: 'f' }] }],
        [false, { ...result, attestations: [{ format: 'f', predicate_type: 'p', provenance: { builder_id: 1 } }] }],
        [false, { ...result, signatures: Array(33).fill({ format: 'f' }) }],
        [false, { ...result, attestations: Array(65).fill({ format: 'f', predicate_type: 'p' }) }],
      ],
      // Empty.
      answers: [],
    },
    'POST /seccomp/profiles/:namespace/:kind/:name/export': {
      bodies: [
        [true, {}],
        [
          true,
          {
            name: 'a.b-1',
            defaultAction: 'SCMP_ACT_KILL',
            format: 'yml',
            acknowledgePartial: true,
            add: ['read'],
            remove: [],
          },
        ],
        [true, { name: '', defaultAction: '', format: '', acknowledgePartial: 'no', unknown: 1 }],
        [true, { name: null, defaultAction: null, format: null, acknowledgePartial: null, add: null, remove: null }],
        [true, { add: Array(512).fill('a'.repeat(64)) }],
        ...[
          { name: 'Upper' },
          { name: 'a'.repeat(254) },
          { name: 7 },
          { defaultAction: 'SCMP_ACT_ALLOW' },
          { format: 'xml' },
        ].map((body): [boolean, unknown] => [false, body]),
        ...[
          { acknowledgePartial: 1 },
          { add: ['Read'] },
          { add: 'read' },
          { remove: ['a'.repeat(65)] },
          { add: Array(513).fill('a') },
        ].map((body): [boolean, unknown] => [false, body]),
        [false, []],
      ],
      // A resource in one of two notations.
      answers: [],
    },
    'POST /pod/spec': {
      bodies: [
        [true, podPost()],
        [true, wholePodPost({ pod_ips: 'anything', unknown: 1 })],
        [false, podPost({ is_dead: undefined })],
        [false, podPost({ pod_obj: [] })],
        [false, podPost({ workload_selector_labels: { a: 1 } })],
        [false, podPost({ time_stamp: '2024-05-01 10:00:00' })],
        [false, podPost({ time_stamp: '0000-05-01T10:00:00' })],
        [false, podPost({ pod_name: 'x'.repeat(254) })],
      ],
      answers: [
        [true, record],
        [true, { ...record, pod_name: ' ', pod_ips: null, capture_level: 'loud' }],
        [false, { ...record, pod_ips: null }],
        [false, { ...record, capture_level: 'loud' }],
        [false, { ...record, uuid: 'x' }],
        [false, { ...record, started_at: undefined }],
        [false, { ...record, time_stamp: `${T}.5` }],
      ],
    },
    'POST /pod/mark_dead': {
      bodies: [
        [true, { pod_name: 'a', pod_ip: null }],
        [false, { pod_ip: 'a' }],
      ],
      answers: [
        [true, 1],
        [false, 2],
        [false, '1'],
      ],
    },
    'POST /svc/spec': {
      bodies: [
        [true, service],
        [false, { ...service, service_spec: 'x' }],
      ],
      answers: [
        [true, service],
        [false, { ...service, svc_ip: null }],
      ],
    },
    'POST /pod/syscalls': {
      bodies: [
        [true, [syscalls]],
        [false, [{ ...syscalls, syscalls: ['a,b'] }]],
        [true, [{ ...syscalls, syscalls: ['', ' '.repeat(65), 'a'.repeat(64)] }]],
        [false, [{ ...syscalls, syscalls: ['a'.repeat(65)] }]],
        [false, syscalls],
      ],
      answers: [
        [true, null],
        [false, 0],
      ],
    },
    'PUT /seccomp/crs/:namespace/:name': {
      bodies: [
        [true, { spec: {} }],
        [
          true,
          {
            spec: { syscalls: [{ names: ['read', 'not a name'], errnoRet: 1 }, {}], workloadRef: null },
            hash: null,
            status: null,
          },
        ],
        [
          true,
          { spec: {}, distribution: { ready: 0, total: 1, state: null, summary: 'x' }, status: { distribution: null } },
        ],
        ...[{}, { spec: null }, { spec: [] }, { spec: 'x' }].map((fields): [boolean, unknown] => [false, fields]),
        ...[
          { defaultAction: 1 },
          { architectures: 'x' },
          { architectures: Array(65).fill('x') },
          { syscalls: {} },
          { syscalls: ['read'] },
          { syscalls: [{ names: 'read' }] },
          { syscalls: [{ names: [1] }] },
          { syscalls: Array(1_025).fill({}) },
          { workloadRef: 'web' },
          { workloadRef: { kind: 'k'.repeat(254) } },
        ].map((spec): [boolean, unknown] => [false, { spec }]),
        [false, { spec: {}, hash: 7 }],
        [false, { spec: {}, hash: 'h'.repeat(254) }],
        ...[[], { ready: -1 }, { total: 1.5 }, { total: 2 ** 31 }, { state: 1 }].flatMap(
          (distribution): [boolean, unknown][] => [
            [false, { spec: {}, distribution }],
            [false, { spec: {}, status: { distribution } }],
          ],
        ),
      ],
      answers: [
        [true, { namespace: 'shop', name: 'web', hash: '', syscallCount: 0 }],
        [false, { namespace: 'shop', name: 'web', hash: null, syscallCount: 0 }],
        [false, { namespace: 'shop', name: 'web', hash: '', syscallCount: 0, updatedAt: T }],
      ],
    },
    'POST /seccomp/node-status': {
      bodies: [
        [true, { node_name: 'n' }],
        [true, { node_name: 'n', paths: ['a', 7, null, { path: 'b' }], files: null }],
        ...[
          {},
          { node_name: null },
          { node_name: ' ' },
          { node_name: 'n'.repeat(254) },
          { node_name: 'n', paths: {} },
        ].map((fields): [boolean, unknown] => [false, fields]),
        [false, { node_name: 'n', files: 'a' }],
      ],
      // Empty.
      answers: [],
    },
    'POST /node/facts': {
      bodies: [
        [true, facts],
        [true, { ...facts, policy_enforcement: null, time_stamp: T }],
        [false, { ...facts, policy_enforcement: 'mixed' }],
        [false, { ...facts, cni: null }],
        [false, { ...facts, node_os: undefined }],
      ],
      answers: [
        [true, null],
        [false, {}],
      ],
    },
    'POST /runtime/coverage': {
      bodies: [
        [true, []],
        [
          true,
          [
            heartbeat,
            {
              ...heartbeat,
              image_digest: image,
              unsent: 1,
              incomplete: null,
              ended: true,
              probe_attached_at: `${T}.5`,
              cap_probe: true,
              cap_hook: 'cap_capable',
              x: 1,
            },
          ],
        ],
        [true, [{ ...heartbeat, workload_kind: null, workload_name: undefined, events_dropped: 7 }]],
        [false, {}],
        [false, heartbeat],
        [false, null],
      ],
      answers: [
        [true, { accepted: 0, dropped: 0, written: 0 }],
        [false, { accepted: 0, dropped: -1, written: 0 }],
        [false, { accepted: 0, written: 0 }],
        [false, {}],
      ],
    },
    'POST /runtime/capabilities': {
      bodies: [
        [true, []],
        [true, [capability, { ...capability, pod_name: null, image_digest: '', probed: true, count: 0, x: 1 }]],
        [false, {}],
        [false, capability],
        [false, null],
      ],
      answers: [
        [true, { accepted: 0, dropped: 0, written: 0 }],
        [false, { accepted: 0, dropped: 0, written: -1 }],
        [false, { accepted: 0, dropped: 0 }],
        [false, {}],
      ],
    },
    'POST /seccomp/denials': {
      bodies: [
        [true, { node: 'n', denials: [] }],
        [
          true,
          {
            node: 'n',
            capturing: false,
            intervalSeconds: 10,
            denials: [denial, { ...denial, syscallNr: null, arch: null }],
          },
        ],
        [
          true,
          {
            node: 'n',
            denials: [
              { ...denial, syscallNr: 1, actionRaw: -1, arch: 'a', firstSeen: `${T}Z`, lastSeen: `${T}.5+02:00`, x: 1 },
            ],
          },
        ],
        [false, { denials: [] }],
        [false, { node: '', denials: [] }],
        [false, { node: 7, denials: [] }],
        [false, { node: 'n'.repeat(254), denials: [] }],
        [false, { node: 'n' }],
        [false, { node: 'n', denials: {} }],
        [false, []],
      ],
      answers: [
        [true, { accepted: 0 }],
        [false, { accepted: -1 }],
        [false, {}],
      ],
    },
    'POST /runtime/executables': {
      bodies: [
        [true, []],
        [true, [executable, { ...executable, pod_name: null, image_digest: '', origin: 'x', path_complete: null }]],
        [false, {}],
        [false, executable],
        [false, null],
      ],
      answers: [
        [true, { accepted: 0, dropped: 0, written: 0 }],
        [false, { accepted: 0, dropped: 0, written: -1 }],
        [false, { accepted: 0, dropped: 0 }],
        [false, {}],
      ],
    },
    'POST /pod/compute/history/batch': {
      bodies: [
        [true, { node: 'n', ts: `${T}Z`, containers: [] }],
        [
          true,
          { node: 'n', ts: `${T}.5+02:00`, interval_ms: 60_000, resolution_secs: 300, containers: [compute], x: 1 },
        ],
        [
          true,
          {
            ...{ node: 'n', ts: `${T}Z` },
            containers: [
              {
                ...{ ...compute, cpu: { usage_millis: { avg: 1, max: 2, last: 1 }, psi_some10: { avg: 1, max: 2 } } },
                ...{
                  memory: { current: { avg: 1 } },
                  runq: { hist: [1] },
                  blame: [{ kind: 'pod', ref: 'r', wait_ns: 1 }],
                },
              },
            ],
          },
        ],
        [false, { node: 'n', containers: [] }],
        [false, { node: ' '.repeat(254), ts: `${T}Z`, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, interval_ms: 0, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, resolution_secs: 0, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, resolution_secs: 86_401, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, containers: {} }],
        [false, []],
      ],
      answers: [
        [true, { accepted: 0 }],
        [false, { accepted: -1 }],
        [false, {}],
      ],
    },
    'POST /pod/compute/batch': {
      bodies: [
        [true, { node: 'n', ts: `${T}Z`, interval_ms: 1, containers: [] }],
        [
          true,
          {
            node: 'n',
            ts: `${T}.5+02:00`,
            interval_ms: 5000,
            containers: [compute],
            ctxt_per_sec: 1.5,
            compute_enabled: false,
            x: 1,
          },
        ],
        [
          true,
          {
            ...{
              node: 'n',
              ts: `${T}Z`,
              interval_ms: 5000,
              node_pressure: { cpu_some10: 1 },
              unknown_blame_share: 0.5,
            },
            containers: [
              {
                ...compute,
                cgroup_id: 1,
                runq: { count: 1, hist: [1] },
                blame: [{ kind: 'pod', ref: 'r', wait_ns: 1 }],
              },
            ],
          },
        ],
        [false, { ts: `${T}Z`, interval_ms: 1, containers: [] }],
        [false, { node: 'n'.repeat(254), ts: `${T}Z`, interval_ms: 1, containers: [] }],
        [false, { node: 'n', ts: T, interval_ms: 1, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, interval_ms: 0, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, interval_ms: 1.5, containers: [] }],
        [false, { node: 'n', ts: `${T}Z`, interval_ms: 1, containers: {} }],
        [false, { node: 'n', ts: `${T}Z`, interval_ms: 1 }],
        [false, []],
      ],
      answers: [
        [true, { accepted: 0 }],
        [false, { accepted: -1 }],
        [false, {}],
      ],
    },
    'POST /pod/traffic': {
      bodies: flows,
      answers: [
        [true, null],
        [true, row],
        [true, { ...row, peer_kind: 'node', peer_resolved_at: T }],
        [false, { ...row, peer_kind: 'external' }],
        [false, { ...row, uuid: null }],
        [false, { ...row, extra: 1 }],
      ],
    },
    'POST /networkpolicy/try': {
      bodies: [
        [true, { apiVersion: 'v1', kind: 'List', items: [] }],
        [false, { apiVersion: 'v1', kind: 'Pod' }],
        [false, {}],
      ],
      answers: [
        [true, trial],
        [false, { ...trial, denied: '0' }],
        [false, { ...trial, asOf: null }],
        [false, { ...trial, more: 1 }],
      ],
    },
    'POST /vex': {
      bodies: [
        [true, { '@context': 'x' }],
        [true, {}],
        [false, []],
        [false, 'x'],
        [false, null],
      ],
      answers: [
        [true, vex],
        [true, { ...vex, statements: [] }],
        [false, { ...vex, status: 'new' }],
        [false, { ...vex, accepted: -1 }],
        [false, { ...vex, statements: [{ ...vex.statements[0], ignored: [{ reason: 'x', product: null }] }] }],
        [false, { ...vex, more: 1 }],
      ],
    },
    'PUT /vulnerabilities/:id/decision': {
      bodies: [
        [true, put],
        [true, { ...put, decision: null, package: null, until: null, justification: null, more: 1 }],
        [true, { ...put, scope: { type: 'workload', namespace: 'n', kind: 'k', name: 'w' }, until: '2099-02-28' }],
        [
          true,
          {
            ...put,
            scope: { type: 'repository', repository: 'r' },
            package: 'pkg:npm/a',
            justification: 'component_not_present',
          },
        ],
        [false, { ...put, scope: { type: 'workload', namespace: 'n', name: 'w' } }],
        [false, { ...put, scope: { type: 'image', digest: 'sha256:1' } }],
        [false, { ...put, scope: 'all' }],
        [false, { ...put, decision: 'ignored' }],
        [false, { ...put, decision: undefined }],
        [false, { ...put, justification: 'because' }],
        [false, { ...put, until: 'tomorrow' }],
        [false, { ...put, by: ' ' }],
        [false, { ...put, why: 'x'.repeat(1_025) }],
        [false, { ...put, package: '' }],
      ],
      answers: [
        [true, { status: 'withdrawn', decision: null }],
        [true, { status: 'stored', decision: decided }],
        [true, { status: 'unchanged', decision: { ...decided, origin: { document: 'd', version: 1, statement: 0 } } }],
        [false, { status: 'stored' }],
        [false, { status: 'stored', decision: { ...decided, decision: 'ignored' } }],
        [false, { status: 'stored', decision: { ...decided, scope: { type: 'cluster' } } }],
      ],
    },
    'POST /pod/traffic/batch': {
      bodies: flows.map(([isGood, one]) => [isGood, [flow, one]]),
      answers: [
        [true, 0],
        [false, -1],
        [false, 1.5],
      ],
    },
  }
})()

test('the document and the schemas of the routes accept and refuse the same examples', () => {
  for (const [name, { bodies, answers }] of Object.entries(EXAMPLES)) {
    const one = routes.find((app) => app.routes.some(({ method, path }) => `${method} ${path}` === name))!
    const { schema } = one.routes.map(({ handler }) => declarationOf(handler).body).find((said) => said !== undefined)!
    const { requestBody, responses } = operation(name.replace(/:(\w+)/g, '{$1}'))
    const checks = [
      ...bodies.map((example) => [schema, requestBody.content['application/json'].schema, example, 'body'] as const),
      ...answers.map(
        (example) =>
          [
            docOf(one)!.answer as z.ZodType,
            responses[200].content['application/json'].schema,
            example,
            'answer',
          ] as const,
      ),
    ]
    for (const [zod, json, [isGood, value], what] of checks) {
      // As received: without undefined keys, and a copy, since some schemas put values into canonical form in place.
      const sent = () => JSON.parse(JSON.stringify(value))
      const shown = `${name} ${what} ${JSON.stringify(value).slice(0, 200)}`
      assert.equal(zod.safeParse(sent()).success, isGood, `zod: ${shown}`)
      assert.equal(validator(json).safeParse(sent()).success, isGood, `document: ${shown}`)
    }
  }
  assert.deepEqual(
    Object.keys(EXAMPLES).sort(),
    [...scopes.keys()].filter((name) => /^(POST|PUT) /.test(name) && !hasNoBody(name)).sort(),
  )
})

test('records with keys in another order are refused', () => {
  const schema = operation('POST /svc/spec').responses[200].content['application/json'].schema
  const service = {
    svc_ip: 'a',
    svc_name: null,
    svc_namespace: null,
    service_spec: null,
    time_stamp: '2024-05-01T10:00:00',
  }
  assertAllowed(schema, service, 'x')
  assert.throws(
    () => assertAllowed(schema, Object.fromEntries(Object.entries(service).reverse()), 'x'),
    /x: the order of keys/,
  )
  const list = operation('GET /svc/info').responses[200].content['application/json'].schema
  assert.throws(
    () => assertAllowed(list, [service, Object.fromEntries(Object.entries(service).reverse())], 'x'),
    /order of keys/,
  )
  assert.throws(() => assertAllowed(list, [{ ...service, svc_name: 1 }], 'x'), /svc_name/)
})

const made = (...apps: Parameters<typeof openApi>[0]) => openApi(apps, '1.2.3')
const answer = z.null()

test('a route that declares everything is documented in full', () => {
  const one = route({
    summary: 'Everything',
    description: 'More.',
    answer: z.strictObject({ at: wireTime }).meta({ id: 'Everything' }),
    also: {
      404: 'No data found',
      409: 'Another holds it',
      422: { description: 'Not so', answer: z.strictObject({ error: z.string() }) },
    },
    tag: 'odd',
  }).put(
    '/odd/:a/:b{[0-9]+}',
    access('supplychain'),
    params(z.object({ b: z.string().describe('B') })),
    query(z.object({ q: z.string(), r: naiveTime.optional() })),
    charge(3),
    body(z.object({ x: z.int() }), 77),
    (c) => c.text('x'),
  )
  const put = made(one).paths['/odd/{a}/{b}']!.put as Json
  assert.deepEqual(
    Object.keys(put.responses).map(Number),
    [200, 400, 401, 403, 404, 408, 409, 413, 415, 422, 431, 500, 503],
  )
  assert.deepEqual(put.parameters, [
    { name: 'a', in: 'path', required: true, schema: { type: 'string' } },
    { name: 'b', in: 'path', description: 'B', required: true, schema: { type: 'string' } },
    { name: 'q', in: 'query', required: true, schema: { type: 'string' } },
    { name: 'r', in: 'query', schema: { $ref: '#/components/schemas/PostedTime' } },
  ])
  assert.equal(put.requestBody['x-max-bytes'], 77)
  assert.deepEqual(put.responses[409], {
    description: 'Another holds it',
    content: { 'text/plain': { schema: { type: 'string' } } },
  })
  assert.equal(put.responses[422].content['application/json'].schema.additionalProperties, false)
  assert.deepEqual([put.tags, put.description], [['odd'], 'More.\n\nNeeds the scope `supplychain`.'])
})

test('a route without a description is listed with what its middleware declares', () => {
  const { get } = made(route().get('/silent/thing', access('open'), (c) => c.text('x'))).paths['/silent/thing'] as Json
  assert.deepEqual([get.summary, Object.keys(get.responses), get.tags], [undefined, ['431', '500', '503'], ['silent']])
})

test('a schema that exists only as code must be described, and one name is one schema', () => {
  const taking = (schema: z.ZodType) =>
    route({ summary: 'X', answer }).post('/x', access('ingest'), body(schema), (c) => c.text('x'))
  const untold = z.custom<string>((value) => typeof value === 'string')
  assert.throws(() => made(taking(z.object({ a: untold }))), /a schema of type custom needs documentedAs/)
  assert.doesNotThrow(() => made(taking(z.object({ a: documentedAs(untold, { type: 'string' }) }))))
  const both = z.strictObject({ a: z.string().default('x') }).meta({ id: 'Both' })
  const twice = route({ summary: 'X', answer: both }).post('/x', access('ingest'), body(both), (c) => c.text('x'))
  assert.throws(() => made(twice), /two schemas are called Both/)
})
