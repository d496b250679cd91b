import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { profileSnapshots } from '../../jobs/profile-snapshots.ts'
import { Profile } from '../../lib/profile/record/profile.ts'
import { checks, take as takeChecks } from '../runtime/capabilities.ts'
import { HOUR, heartbeat, inSecs, take as takeHeartbeats } from '../runtime/heartbeats.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, digestOf, newNamespace } from '../support/images.ts'
import { countEdges, flowOf, podOf, seed, seedShop } from '../support/policy-cluster.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { storeDenials, storePods, storeResources, storeWatchers, storeWorkloads } from '../support/seccomp.ts'
import { startStub } from '../support/stub.ts'
import { assertCoded, BAD_PATHS } from './profile-errors.ts'

/** 8 MiB. */
const CHARGE_KIB = 8_192

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const { sql } = app
await seedShop(app)

const pathOf = (namespace: string, name: string, kind = 'Deployment') =>
  `/workloads/${[namespace, kind, name].map(encodeURIComponent).join('/')}/profile`
async function read(namespace: string, name: string, kind?: string) {
  const answer = await app.get(pathOf(namespace, name, kind))
  assert.equal(answer.status, 200, answer.text)
  assert.equal(JSON.stringify(Profile.parse(answer.json)), answer.text, 'the keys are in wire order')
  return Profile.parse(answer.json)
}
const snapshots = () =>
  profileSnapshots.run({ config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal })

const RESTRICTED = {
  ...{ allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 1_000, readOnlyRootFilesystem: true },
  ...{ capabilitiesDrop: ['ALL'], seccompProfileType: 'RuntimeDefault' },
}
const POD_SECURITY = { automountServiceAccountToken: false, hostNetwork: false, securityContext: {} }

interface Seen {
  readonly security?: object
  readonly pod?: object
  readonly digest?: string
}

/** A pod of Deployment `web` with one container `app` that runs. */
const webOf = (namespace: string, { security = RESTRICTED, pod = POD_SECURITY, digest = digestOf('app') }: Seen = {}) =>
  podOf({
    ...{ namespace, name: `${namespace}-web-1`, ip: `10.8.0.${pods++}`, workload: 'Deployment/web' },
    more: { containers: [container('app', digest, { security_context: security })], pod_security: pod },
  })
let pods = 1

describe('what is not known', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: of a pod alone nothing is known, and nothing is ok', async () => {
    const { workload, version, snapshotPending, posture, attention, exposure, readiness, controls, dimensions, drift } =
      await read('shop', 'api')
    assert.deepEqual(workload, {
      ...{ clusterId: 'primary', namespace: 'shop', kind: 'Deployment', name: 'api', transient: false },
      pods: { live: 1, names: ['api-1'], truncated: false },
    })
    assert.deepEqual([version, snapshotPending], [null, true])
    assert.deepEqual(posture, {
      status: 'unknown',
      coverage: 0,
      unknownDimensions: ['network', 'syscalls', 'podSecurity', 'images'],
      reasons: (['network', 'syscalls', 'podSecurity', 'images'] as const).map((dimension) => ({
        ...{ dimension, status: 'unknown', message: dimensions[dimension].reasons[0]!.message },
      })),
    })
    assert.deepEqual(attention, [])
    assert.deepEqual(exposure, { ingressPeers: 2, ingressExternal: 0, egressPeers: 2, egressExternal: 1 })
    assert.deepEqual(
      readiness.map(({ id, ok }) => [id, ok]),
      [
        ['trafficObserved24h', true],
        ['syscallCaptureComplete', null],
        ['noWouldDeny24h', null],
        ['imageSigned', null],
        ['podSecurityRestricted', null],
      ],
    )
    assert.deepEqual(
      controls.map(({ control, state, inSync }) => [control, state, inSync]),
      [
        ['networkPolicy', 'unknown', null],
        ['seccompProfile', 'none', null],
        ['imageAdmission', null, null],
      ],
    )
    assert.deepEqual(
      Object.values(dimensions).map(({ reasons }) => reasons[0]!.code),
      ['policy_state_unknown', 'no_observations', 'no_inventory', 'no_inventory', 'no_compute_data'],
    )
    assert.deepEqual(drift.evaluated, [])
    assert.equal(drift.notEvaluated.length, 4)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: a container that passes every check that can be made is not known to be restricted', async () => {
    const namespace = newNamespace()
    await seed(app, [webOf(namespace)], [], [])
    const { dimensions, posture, readiness, findings } = await read(namespace, 'web')
    const { status, level, levelConfidence, coverage } = dimensions.podSecurity
    assert.deepEqual([status, level, levelConfidence, coverage.fraction], ['unknown', 'restricted', 'upper_bound', 0.5])
    assert.equal(posture.status, 'unknown')
    assert.equal(readiness.at(-1)!.ok, null)
    assert.deepEqual(
      findings.filter(({ dimension }) => dimension === 'podSecurity'),
      [],
    )
    assert.deepEqual(
      dimensions.images.reasons.map(({ code }) => code),
      ['vulnerabilities_not_configured', 'signatures'],
    )
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: a seccomp profile that is applied is a control, also before a syscall was captured', async () => {
    const namespace = newNamespace()
    await seed(app, [webOf(namespace)], [], [])
    const resource = { namespace, name: 'web-profile', kind: 'Deployment', workload: 'web', hash: 'h' }
    await storeResources(sql, [{ ...resource, names: ['read'], action: 'SCMP_ACT_ERRNO' }])
    const { dimensions, controls } = await read(namespace, 'web')
    assert.deepEqual([dimensions.syscalls.status, dimensions.syscalls.cr], ['unknown', null])
    const { state, detail, inSync } = controls[1]!
    assert.deepEqual([state, inSync], ['enforcing', null])
    assert.match(detail, /^The SeccompProfile web-profile \(SCMP_ACT_ERRNO\) refers to this workload/)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: traffic is observed since the first flow, also of a peer that is not listed', async () => {
    await app.post(
      '/pod/spec',
      podOf({ namespace: 'many', name: 'many-1', ip: '10.8.0.1', workload: 'Deployment/many' }),
    )
    await sql`
      insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, traffic_in_out_ip,
                             is_public, port, ip_protocol, decision, flows, pods, first_seen_at, last_new_at, counted_at)
      select gen_random_uuid(), case n when 0 then 'EGRESS' else 'INGRESS' end, 'many', 'Deployment', 'many', '8.8.8.' || n,
             true, '443', 'TCP', 'ALLOW', 1, 1, now() - case n when 0 then interval '3 days' else '1 minute' end, now(), now()
      from generate_series(0, 200) n`
    const { readiness, dimensions } = await read('many', 'many')
    assert.ok(!dimensions.network.peers.some(({ direction }: { direction: string }) => direction === 'egress'))
    assert.deepEqual(
      [readiness[0]?.ok, readiness[0]?.message, dimensions.network.coverage.observedSince?.slice(0, 10)],
      [
        true,
        'Flows are seen for 3 day(s) and 0 hour(s)',
        new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10),
      ],
    )
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: while the stored flows are counted for the first time, that is the reason, and no version is made', async () => {
    const own = await startApp()
    await own.post('/pod/spec', webOf('early'))
    await own.sql`update flow_edge_cursor set as_of = null`
    const early = async () => (await own.get(pathOf('early', 'web'))).json
    assert.match((await early()).dimensions.network.reasons[0].message, /not counted yet/)
    const context = { config: own.deps.config, db: own.db, log: own.deps.log, signal: new AbortController().signal }
    await profileSnapshots.run(context)
    assert.equal((await early()).version, null)
    await countEdges(own)
    assert.match((await early()).dimensions.network.reasons[0].message, /No flow/)
    await profileSnapshots.run(context)
    assert.equal((await early()).version.revision, 1)
  })
})

describe('posture', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: the worst finding decides, findings are sorted, and five are for attention', async () => {
    const namespace = newNamespace()
    const pod = { hostNetwork: true, hostPID: true, securityContext: {} }
    await seed(app, [webOf(namespace, { security: { privileged: true }, pod })], [], [])
    const { posture, attention, findings, dimensions, readiness } = await read(namespace, 'web')
    assert.deepEqual([posture.status, posture.coverage], ['risk', 0.25])
    assert.deepEqual(posture.unknownDimensions, ['network', 'syscalls', 'images'])
    const [first] = dimensions.podSecurity.reasons
    assert.deepEqual(posture.reasons[2], { dimension: 'podSecurity', status: 'risk', message: first!.message })
    const ranks = ['critical', 'high', 'medium', 'low', 'info']
    const keys = findings.map(({ severity, id }) => `${ranks.indexOf(severity)} ${id}`)
    assert.deepEqual(keys, [...keys].sort())
    assert.deepEqual(attention, findings.slice(0, 5))
    assert.ok(attention.every(({ severity }) => severity === 'high' || severity === 'medium'))
    assert.equal(readiness.at(-1)!.ok, false)
  })
})

describe('syscalls', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: without a custom resource, with one that logs, and with one that enforces', async () => {
    const namespace = newNamespace()
    const of = { namespace, kind: 'Deployment', name: 'web' }
    await storeWorkloads(sql, [{ ...of, names: ['read', 'write'], updatedAt: '2026-05-01T10:00:00' }])
    await storePods(sql, [{ name: `${namespace}-web-1`, of, level: 'full' }])
    const { dimensions, findings } = await read(namespace, 'web')
    const { syscalls } = dimensions
    assert.deepEqual([syscalls.status, syscalls.cr, syscalls.denials], ['warn', null, null])
    assert.deepEqual(
      syscalls.reasons.map(({ code }) => code),
      ['no_cr', 'denials_unknown'],
    )
    assert.deepEqual(syscalls.capture, { level: 'full', complete: true, incompletePods: 0 })
    assert.equal(syscalls.observed!.updatedAt, '2026-05-01T10:00:00Z')
    assert.deepEqual(
      findings.map(({ id, severity }) => [id, severity]),
      [['syscalls.no_enforcing_profile', 'medium']],
    )

    const resource = { namespace, name: 'web', kind: 'Deployment', workload: 'web', hash: 'h' }
    await storeResources(sql, [{ ...resource, names: ['read', 'exit'], action: 'SCMP_ACT_LOG' }])
    const audit = await read(namespace, 'web')
    assert.deepEqual(
      audit.dimensions.syscalls.reasons.map(({ code }) => code),
      ['cr_audit', 'cr_drift', 'denials_unknown'],
    )
    const { mode, inSync, missing, extra } = audit.dimensions.syscalls.cr!
    assert.deepEqual([mode, inSync, missing, extra], ['audit', false, ['write'], ['exit']])
    assert.deepEqual(
      audit.findings.map(({ id }) => id),
      ['syscalls.drift', 'syscalls.no_enforcing_profile'],
    )
    assert.deepEqual([audit.controls[1]!.state, audit.controls[1]!.inSync], ['audit', false])

    await sql`delete from seccomp_cr where namespace = ${namespace}`
    await storeResources(sql, [
      { ...resource, names: ['read', 'write'], action: 'SCMP_ACT_ERRNO', ready: 1, total: 2, state: 'Partial' },
    ])
    await storeWatchers(sql, [{ name: 'node-1' }])
    const enforced = await read(namespace, 'web')
    assert.deepEqual([enforced.dimensions.syscalls.status, enforced.dimensions.syscalls.reasons], ['ok', []])
    assert.deepEqual(enforced.dimensions.syscalls.denials, { total: 0, syscalls: [], lastSeen: null })
    const { distribution, statusDistribution } = enforced.dimensions.syscalls.cr!
    assert.deepEqual(distribution, { ready: 0, total: 0, state: 'Pending' })
    assert.deepEqual(statusDistribution, { ready: 1, total: 2, state: 'Partial' })
    assert.deepEqual([enforced.controls[1]!.state, enforced.controls[1]!.inSync], ['enforcing', true])
    assert.deepEqual(enforced.posture.unknownDimensions, ['network', 'podSecurity', 'images'])

    await storeDenials(sql, [
      { pod: `${namespace}-web-1`, ...{ namespace, kind: 'Deployment', workload: 'web' }, syscall: 'mount' },
    ])
    const denied = await read(namespace, 'web')
    assert.deepEqual(
      denied.findings.map(({ id, severity, tier }) => [id, severity, tier]),
      [['syscalls.denials', 'high', 'P1']],
    )
    assert.deepEqual([denied.dimensions.syscalls.status, denied.posture.status], ['risk', 'risk'])
    assert.equal(denied.posture.reasons[1]!.message, denied.findings[0]!.title)
    await sql`delete from seccomp_denial`
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: what was not captured whole is not ok', async () => {
    const namespace = newNamespace()
    const of = { namespace, kind: 'Deployment', name: 'web' }
    await storeWorkloads(sql, [{ ...of, names: ['read'] }])
    await storePods(sql, [{ name: `${namespace}-web-1`, of, level: 'low' }])
    await storeResources(sql, [
      { namespace, name: 'web', kind: 'Deployment', workload: 'web', names: ['read'], action: 'SCMP_ACT_ERRNO' },
    ])
    const { dimensions, findings, readiness } = await read(namespace, 'web')
    const { status, coverage, reasons } = dimensions.syscalls
    assert.deepEqual([status, coverage.level, findings], ['warn', 'partial', []])
    assert.deepEqual(
      reasons.map(({ code }) => code),
      ['capture_incomplete'],
    )
    assert.equal(readiness[1]!.ok, false)
  })
})

describe('capabilities, versions and changes', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: capabilities are those of their own route', async () => {
    const namespace = newNamespace()
    const posted = webOf(namespace)
    await seed(app, [posted], [], [])
    await takeHeartbeats(app, [
      heartbeat({
        ...{ pod_namespace: namespace, pod_name: posted.pod_name, image_digest: digestOf('app') },
        ...{ tracking_since: inSecs(-200 * HOUR), cap_probe: true, cap_hook: 'cap_capable' },
      }),
    ])
    await takeChecks(app, [checks({ pod_namespace: namespace, image_digest: digestOf('app'), capability: 'CHOWN' })])
    const { capabilities } = await read(namespace, 'web')
    assert.deepEqual(capabilities, (await app.get(`/workloads/${namespace}/Deployment/web/capabilities`)).json)
    assert.equal(capabilities.containers.length, 1)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 200: a version is pending until the job has stored it, and again after a change', async () => {
    const namespace = newNamespace()
    const posted = webOf(namespace)
    await seed(app, [posted], [], [flowOf(posted, 'EGRESS', '10.1.0.2', '8080')])
    await snapshots()
    const first = await read(namespace, 'web')
    assert.deepEqual([first.version!.revision, first.version!.contentHash], [1, first.contentHash])
    assert.equal(first.snapshotPending, false)
    assert.equal((await read(namespace, 'web')).contentHash, first.contentHash, 'times and counts do not count')

    await seed(app, [webOf(namespace, { digest: digestOf('app-2') })], [], [])
    const changed = await read(namespace, 'web')
    assert.notEqual(changed.contentHash, first.contentHash)
    assert.deepEqual([changed.version!.revision, changed.snapshotPending], [1, true])
    await snapshots()
    const { revision, contentHash } = (await read(namespace, 'web')).version!
    assert.deepEqual([revision, contentHash], [2, changed.contentHash])
    const { items } = (await app.get(`${pathOf(namespace, 'web')}/versions`)).json
    assert.deepEqual(
      items.map((item: { revision: number; changedDimensions: string[] }) => [item.revision, item.changedDimensions]),
      [
        [2, ['images']],
        [1, ['network', 'syscalls', 'podSecurity', 'images']],
      ],
    )
    const listed = (await app.get(`/workloads?namespace=${namespace}`)).json.items
    assert.deepEqual(
      listed.map(({ name, revision }: { name: string; revision: number }) => [name, revision]),
      [['web', 2]],
    )
  })
})

describe('refusals', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/profile 400: a part of the path that is blank, too long or has a slash', async () => {
    for (const [{ namespace, kind, name }] of BAD_PATHS)
      assertCoded(await app.get(pathOf(namespace, name, kind)), 400, 'bad_request')
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 401: without a token', async () => {
    assertUnauthorized(await guarded.get(pathOf('shop', 'api')))
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 404: only if nothing is known of the workload', async () => {
    for (const [namespace, name, kind] of [
      ['shop', 'nobody', 'Deployment'],
      ['shop', 'api', 'deployment'],
      ['nowhere', 'api', 'Deployment'],
      ['shop', 'api-1', 'Pod'],
    ] as const)
      assertCoded(await app.get(pathOf(namespace, name, kind)), 404, 'workload_not_found')
    await app.post('/pod/spec', podOf({ namespace: 'bare', name: 'bare-1', ip: '10.7.0.1' }))
    const { workload } = await read('bare', 'bare-1', 'Pod')
    assert.deepEqual([workload.transient, workload.pods.names], [true, ['bare-1']])
    const half = { ...podOf({ namespace: 'bare', name: 'half-1', ip: '10.7.0.2' }), workload_kind: 'ReplicaSet' }
    await app.post('/pod/spec', { ...half, workload_name: '' })
    assert.deepEqual((await read('bare', 'half-1', 'Pod')).workload.pods.names, ['half-1'])
    await app.post('/pod/mark_dead', { pod_name: 'bare-1', pod_namespace: 'bare' })
    await sql`update pod set is_dead = true where pod_name = 'bare-1'`
    assert.deepEqual((await read('bare', 'bare-1', 'Pod')).workload.pods, { live: 0, names: [], truncated: false })
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 503: the database cancels the statement', async () => {
    await whileRefused(sql, 'workload_container', async () => assertDatabaseBusy(await app.get(pathOf('shop', 'api'))))
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 503: an evaluator that has to be asked is charged for', async () => {
    const evaluator = await startStub(() => ({ json: { evaluatedAt: null, results: [] } }))
    const asking = await startApp({ EVALUATOR_URL: evaluator.url, BROKER_READ_ACQUIRE_WAIT_MS: '0' })
    await asking.post('/pod/spec', webOf('shop'))
    const { budget } = asking.deps
    const held = await budget.enter(budget.totalKib - CHARGE_KIB)
    assertShed(await asking.get(pathOf('shop', 'web')), CHARGE_KIB + 1_024, budget.totalKib)
    held.release()
    const { json } = await asking.get(pathOf('shop', 'web'))
    assert.deepEqual(json.dimensions.images.supplyChain.imageTrust.available, true)
    const again = await budget.enter(budget.totalKib - CHARGE_KIB)
    assert.equal((await asking.get(pathOf('shop', 'web'))).status, 200, 'it is known for a while')
    again.release()
  })

  test('GET /workloads/{namespace}/{kind}/{name}/profile 503: charged before anything is read', async () => {
    await guarded.sql`insert into workload_syscalls values ('shop', 'Deployment', 'api', 'read', '{}', 'h', 1, now())`
    const { budget } = guarded.deps
    const held = await budget.enter(budget.totalKib - CHARGE_KIB + 1)
    assertShed(await guarded.get(pathOf('shop', 'api'), { token }), CHARGE_KIB, budget.totalKib)
    held.release()
    assert.equal((await guarded.get(pathOf('shop', 'api'), { token })).status, 200)
  })
})
