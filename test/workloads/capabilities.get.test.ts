import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checks, DIGEST, take } from '../runtime/capabilities.ts'
import { digest, type Fields, HOUR, heartbeat, inSecs } from '../runtime/heartbeats.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { age, container, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { CAPABILITIES, type DrawnContainer, expected, type WATCHED } from './capabilities-model.ts'

/** 5 200 rows of 512 bytes. */
const CHARGE_KIB = 2_600
const WINDOW_HOURS = 168
const RUNS = depth(30, 1_000)

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const { sql } = app

const pathOf = (namespace: string, name = 'web', kind = 'Deployment') =>
  `/workloads/${[namespace, kind, name].map(encodeURIComponent).join('/')}/capabilities`
const NOBODY = pathOf('nowhere')

const read = async (namespace: string, name?: string, kind?: string) => {
  const answer = await app.get(pathOf(namespace, name, kind))
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
/** The only container of the workload. */
const only = async (namespace: string) => {
  const { containers } = await read(namespace)
  assert.equal(containers.length, 1)
  return containers[0]
}
const ok = async (path: string, body: unknown) => {
  const answer = await app.post(path, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

/** A heartbeat that leaves nothing open: watched from the start, for longer than the window. */
const watched = (namespace: string, pod: string, fields: Fields = {}) =>
  heartbeat({
    ...{ pod_namespace: namespace, pod_name: pod, tracking_since: inSecs(-200 * HOUR), heartbeat_secs: 300 },
    ...{ cap_probe: true, cap_hook: 'cap_capable' },
    ...fields,
  })

interface Shown {
  /** Of the container in the post of the pod. */
  readonly security?: Fields
  readonly kind?: string
  /** Of the heartbeat; null for none. */
  readonly beat?: Fields | null
  readonly checks?: readonly Fields[]
}

/** A workload with one container `app`, which runs in one pod; watched, unless `beat` says otherwise. */
async function workload({ security = {}, kind = 'regular', beat = {}, checks: entries = [] }: Shown = {}) {
  const [namespace, image] = [newNamespace(), newDigest()]
  const post = replica(namespace, [container('app', image, { security_context: security, kind })])
  const pod = String(post.pod_name)
  await ok('/pod/spec', post)
  if (beat) await ok('/runtime/coverage', [watched(namespace, pod, { image_digest: image, ...beat })])
  await take(app, [...entries.map((fields) => checks({ pod_namespace: namespace, image_digest: image, ...fields }))])
  return { namespace, image, pod, post }
}

test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: every key in wire order', async () => {
  const tracking_since = inSecs(-300 * HOUR)
  const { namespace, image } = await workload({
    security: { capabilitiesAdd: ['CHOWN', 'NET_ADMIN'] },
    beat: { tracking_since },
    checks: [
      { capability: 'NET_BIND_SERVICE', count: 8 },
      { capability: 'CHOWN', count: 1, last_seen: '2026-01-01T00:00:00.5' },
      { capability: 'NET_RAW', granted: false, count: 2 },
      { capability: 'SYS_ADMIN', probed: true, count: 18 },
      { capability: 'SETUID', probed: true, count: 0 },
      { capability: 'SYSLOG', granted: false, probed: true },
    ],
  })
  const times = { firstSeen: '2026-01-01T00:00:00', lastSeen: '2026-01-01T01:00:00' }
  const answer = await app.get(pathOf(namespace))
  const { reason } = answer.json.containers[0].recommendation.probedOmitted[0]
  assert.match(reason, /allowPrivilegeEscalation: false/)
  assert.equal(
    answer.text,
    JSON.stringify({
      windowHours: WINDOW_HOURS,
      containers: [
        {
          container: 'app',
          digests: [image],
          evidence: 'sufficient',
          reason: null,
          reasonDetail: null,
          observedSince: tracking_since,
          used: [
            { capability: 'CHOWN', count: 1, ...times, lastSeen: '2026-01-01T00:00:00.500' },
            { capability: 'NET_BIND_SERVICE', count: 8, ...times },
          ],
          denied: [{ capability: 'NET_RAW', count: 2, ...times }],
          probed: [
            { capability: 'SETUID', count: 0, ...times },
            { capability: 'SYS_ADMIN', count: 18, ...times },
          ],
          recommendation: {
            drop: ['ALL'],
            add: ['CHOWN', 'NET_BIND_SERVICE', 'SETUID'],
            probedKept: ['SETUID'],
            probedOmitted: [{ capability: 'SYS_ADMIN', reason }],
            requires: { allowPrivilegeEscalation: false },
          },
          unusedAdded: ['NET_ADMIN'],
        },
      ],
    }),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: an unknown workload has no containers, also with checks', async () => {
  const namespace = newNamespace()
  await take(app, [checks({ pod_namespace: namespace })])
  assert.equal((await app.get(pathOf(namespace))).text, '{"windowHours":168,"containers":[]}')
})

test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: the workload must match exactly, including case', async () => {
  const { namespace } = await workload({ checks: [{}, { workload_name: 'WEB' }, { workload_kind: 'Job' }] })
  assert.equal((await only(namespace)).used[0].count, 3)
  for (const [name, kind] of [
    ['WEB', 'Deployment'],
    ['web', 'deployment'],
    ['we%', 'Deployment'],
  ])
    assert.deepEqual((await read(namespace, name, kind)).containers, [])
})

describe('containers', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: all of the inventory by name; one that does not run has no digests', async () => {
    const namespace = newNamespace()
    const post = replica(namespace, [
      container('web', newDigest()),
      container('init', newDigest(), { kind: 'init', state: 'terminated' }),
      container('Zeta', newDigest(), { kind: 'ephemeral' }),
    ])
    await ok('/pod/spec', post)
    await take(app, [checks({ pod_namespace: namespace, container_name: 'init' })])
    const { containers } = await read(namespace)
    assert.deepEqual(
      containers.map((c: Fields) => [c.container, (c.digests as string[]).length, c.reason]),
      [
        ['Zeta', 1, 'no_runtime_data'],
        ['init', 0, 'no_current_digest'],
        ['web', 1, 'no_runtime_data'],
      ],
    )
    const init = containers[1]
    assert.deepEqual([init.evidence, init.observedSince, init.recommendation], ['insufficient', null, null])
    assert.equal(init.used.length, 1)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: a container that changed its kind with its image is one', async () => {
    const [namespace, old, now] = [newNamespace(), newDigest(), newDigest()]
    await ok('/pod/spec', replica(namespace, [container('app', old, { kind: 'init' })]))
    await ok('/pod/spec', replica(namespace, [container('app', now)]))
    assert.deepEqual((await only(namespace)).digests.sort(), [old, now].sort())
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: running digests, the newest first; checks of all digests ever', async () => {
    const [namespace, gone, first, second] = [newNamespace(), newDigest(), newDigest(), newDigest()]
    const post = replica(namespace, [container('app', gone, { security_context: { capabilitiesAdd: ['KILL'] } })])
    await ok('/pod/spec', post)
    // It moved to another image, and the row of the old one names no pod.
    await ok('/pod/spec', { ...post, containers: [container('app', first)] })
    await age(sql, 1_000)
    await ok('/pod/spec', replica(namespace, [container('app', second)]))
    const seen = (image_digest: string, n: number) =>
      checks({
        ...{ pod_namespace: namespace, image_digest, count: n },
        ...{ first_seen: `2026-01-0${n}T00:00:00`, last_seen: `2026-01-0${n}T01:00:00` },
      })
    await take(app, [seen(first, 3), seen(gone, 1), seen('', 4)])
    const { digests, used } = await only(namespace)
    assert.deepEqual(digests, [second, first])
    assert.deepEqual(used, [
      {
        ...{ capability: 'NET_BIND_SERVICE', count: 8 },
        ...{ firstSeen: '2026-01-01T00:00:00', lastSeen: '2026-01-04T01:00:00' },
      },
    ])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: checks of a container that is not in the inventory are not shown', async () => {
    const { namespace } = await workload({ checks: [{}, { container_name: 'other' }, { container_name: 'apps' }] })
    assert.deepEqual((await only(namespace)).used.length, 1)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: sums of counts end at 2^53 - 1', async () => {
    const most = Number.MAX_SAFE_INTEGER
    const { namespace } = await workload({ checks: [{ count: most }, { count: most, image_digest: DIGEST }] })
    assert.equal((await only(namespace)).used[0].count, most)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: with more than 256 running rows of the inventory the evidence is insufficient', async () => {
    const { namespace, image } = await workload()
    const add = (from: number, to: number, state: string) => sql`
      insert into workload_container
      select 'primary', ${namespace}, 'Deployment', 'web', 'c' || n, ${image}, 'regular', 'r', '{}', '{}', null, ${state}, null, null,
             now() at time zone 'utc', now() at time zone 'utc'
      from generate_series(${from}::int, ${to}::int) n`
    await add(1, 255, 'running')
    await add(256, 400, 'terminated')
    const reasonOf = async () =>
      (await read(namespace)).containers.find(({ container }: Fields) => container === 'app').reason
    assert.equal(await reasonOf(), null)
    await add(401, 401, 'running')
    assert.equal(await reasonOf(), 'rows_truncated')
  })
})

describe('evidence', () => {
  const ON = { cap_probe: true, cap_hook: 'cap_capable' }
  const RECENT = { tracking_since: inSecs(-100 * HOUR) }
  const PARTIAL = { cap_hook: 'security_capable' }
  const BACKFILL = { start_mode: 'backfill' }
  /** The cause in the detail of a reason; those of `capture_gap` differ. */
  const CAUSES: Record<string, string> = {
    ...{ probes_missing: 'exec_probe_missing', libraries_not_tracked: 'mode_exec', events_dropped: 'events_dropped' },
    ...{ events_pending: 'events_unsent', incomplete_paths: 'inventory_incomplete' },
    ...{ capabilities_not_tracked: 'capability_probe_missing', capabilities_partial_hook: 'capability_hook_partial' },
    ...{ capabilities_not_seen_since_start: 'late_start', late: 'silent' },
    ...{ 'nobody watches': 'never_watched', 'another image is watched': 'never_watched' },
    ...{ 'its last heartbeat is before the window': 'last_heartbeat', 'a gap, and no probe': 'watched_since' },
    'watched since within the window': 'watched_since',
  }
  const cases: [what: string, reason: string | null, beat: Fields | null][] = [
    ['watched from its start, before the window', null, {}],
    ['watched from its start, and ended within the window', null, { ended: true, heartbeat_at: inSecs(-50 * HOUR) }],
    ['nobody watches', 'no_runtime_data', null],
    ['its last heartbeat is before the window', 'no_runtime_data', { heartbeat_at: inSecs(-169 * HOUR) }],
    ['another image is watched', 'no_runtime_data', { image_digest: digest('other') }],
    ['watched since within the window', 'capture_gap', RECENT],
    ['late', 'capture_gap', { heartbeat_at: inSecs(-2 * HOUR) }],
    ['without the probe for files', 'probes_missing', { exec_probe: false }],
    ['without libraries', 'libraries_not_tracked', { mode: 'exec' }],
    ['events lost', 'events_dropped', { events_dropped: 1 }],
    ['events not sent', 'events_pending', { unsent: 1 }],
    ['incomplete', 'incomplete_paths', { incomplete: true }],
    ['without the probe for capabilities', 'capabilities_not_tracked', { cap_probe: false }],
    ['of an agent that says nothing of it', 'capabilities_not_tracked', { cap_probe: undefined, cap_hook: undefined }],
    ['at a function that does not see all', 'capabilities_partial_hook', PARTIAL],
    ['at an unknown function', 'capabilities_partial_hook', { cap_hook: null }],
    ['running when watching began', 'capabilities_not_seen_since_start', BACKFILL],
    // The order of the reasons.
    ['a gap, and no probe', 'capture_gap', { ...RECENT, cap_probe: false }],
    ['no probe, and a partial function', 'capabilities_not_tracked', { ...PARTIAL, ...BACKFILL, cap_probe: false }],
    ['a partial function, and not from the start', 'capabilities_partial_hook', { ...PARTIAL, ...BACKFILL }],
  ]
  for (const [what, reason, beat] of cases)
    test(`GET /workloads/{namespace}/{kind}/{name}/capabilities 200: ${what}: ${reason ?? 'sufficient'}`, async () => {
      const { namespace, image, pod } = await workload({
        beat,
        security: { capabilitiesAdd: ['CHOWN'] },
        checks: [{}, { granted: false }, { probed: true }],
      })
      // Otherwise its pod would still run a container that nobody watches.
      if (beat?.ended) await sql`update pod set is_dead = true where pod_namespace = ${namespace}`
      const found = await only(namespace)
      const isSufficient = reason === null
      assert.deepEqual([found.evidence, found.reason], [isSufficient ? 'sufficient' : 'insufficient', reason])
      assert.deepEqual(
        [found.used, found.denied, found.probed].map(({ length }) => length),
        [1, 1, 1],
      )
      assert.deepEqual(
        [found.recommendation !== null, found.unusedAdded],
        [isSufficient, isSufficient ? ['CHOWN'] : []],
      )
      assert.equal(found.observedSince === null, reason === 'no_runtime_data')
      assert.equal(found.reasonDetail?.cause ?? null, reason === null ? null : (CAUSES[what] ?? CAUSES[reason]))
      if (reason !== null)
        assert.deepEqual(
          [found.reasonDetail.podName, found.reasonDetail.at === null],
          [pod, found.reasonDetail.cause === 'never_watched'],
        )
      // The public function says the same.
      const rows = await sql`
        select covered, reason, wire_time(observed_since) as since
        from kg_capability_coverage('primary', ${namespace}, 'Deployment', 'web', 'app', ${image}, ${WINDOW_HOURS})`
      assert.deepEqual([...rows], [{ covered: isSufficient, reason, since: found.observedSince }])
    })

  /**
   * A container that is watched from its start, with heartbeats at these hours before now. The last one is repeated
   * until now, in time.
   */
  const history = async (...told: [hours: number, fields: Fields][]) => {
    const last = told.at(-1)![1]
    const beats: typeof told = [...told, ...[120, 60, 0].map((hours): [number, Fields] => [hours, last])]
    const { namespace, image, pod } = await workload({ beat: null })
    const one = watched(namespace, pod, { image_digest: image, heartbeat_secs: 86_400 })
    const at = beats.map(([hours]) => inSecs(-hours * HOUR))
    for (const [n, [, fields]] of beats.entries())
      await ok('/runtime/coverage', [{ ...one, ...fields, heartbeat_at: at[n] }])
    const coverage = await sql`
      select reason from kg_runtime_coverage('primary', ${namespace}, 'Deployment', 'web', 'app', ${image}, ${WINDOW_HOURS})`
    return { found: await only(namespace), at, inventoryReason: coverage[0]!.reason, started: one.tracking_since }
  }

  for (const [what, first] of [
    ['attached', { cap_probe: false }],
    ['at another function before', { cap_hook: 'security_capable' }],
  ] as const)
    test(`GET /workloads/{namespace}/{kind}/{name}/capabilities 200: the probe ${what}, within the life: evidence needs a new container, the inventory does not`, async () => {
      const { found, at, inventoryReason } = await history([190, first], [180, ON])
      assert.deepEqual([found.reason, found.observedSince], ['capabilities_not_seen_since_start', at[1]])
      assert.equal(inventoryReason, null)
    })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: an unchanged probe is evidence from the start', async () => {
    const { found, started } = await history([190, ON], [180, ON])
    assert.deepEqual([found.reason, found.observedSince], [null, started])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: after a gap before the window, the inventory is covered again, capabilities are not', async () => {
    const tracking_since = inSecs(-1_100 * HOUR)
    const { found, at, inventoryReason } = await history(
      [1_000, { ...ON, tracking_since }],
      [180, { ...ON, tracking_since }],
    )
    assert.deepEqual([found.reason, inventoryReason], ['capabilities_not_seen_since_start', null])
    assert.equal(found.observedSince, at[1])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: each instance in the window must be watched', async () => {
    const { namespace, image } = await workload()
    const other = (fields: Fields) => watched(namespace, 'gone', { image_digest: image, ended: true, ...fields })
    await ok('/runtime/coverage', [other({ heartbeat_at: inSecs(-169 * HOUR), cap_probe: false })])
    assert.equal((await only(namespace)).reason, null)
    await ok('/runtime/coverage', [other({ heartbeat_at: inSecs(-160 * HOUR), cap_probe: false })])
    assert.equal((await only(namespace)).reason, 'capabilities_not_tracked')
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: all running digests must be covered; the first that is not has the reason, the latest start counts', async () => {
    const { namespace, image, post } = await workload({ beat: { tracking_since: inSecs(-300 * HOUR) } })
    const second = newDigest()
    await age(sql, 10)
    await ok('/pod/spec', replica(namespace, [container('app', second)], { pod_name: `${post.pod_name}-2` }))
    assert.deepEqual((({ digests, reason }) => [digests, reason])(await only(namespace)), [
      [second, image],
      'no_runtime_data',
    ])
    const tracking_since = inSecs(-250 * HOUR)
    const beat = watched(namespace, `${post.pod_name}-2`, { image_digest: second, tracking_since })
    await ok('/runtime/coverage', [beat])
    const { reason, observedSince } = await only(namespace)
    assert.deepEqual([reason, observedSince], [null, tracking_since])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: the window is configured', async () => {
    const wide = await startApp({ CAPABILITY_EVIDENCE_WINDOW_HOURS: '240' })
    const namespace = newNamespace()
    const post = replica(namespace, [container('app', DIGEST)])
    const beat = watched(namespace, String(post.pod_name), { image_digest: DIGEST })
    for (const [path, body] of [
      ['/pod/spec', post],
      ['/runtime/coverage', [beat]],
    ] as const)
      assert.equal((await wide.post(path, body)).status, 200)
    const { windowHours, containers } = (await wide.get(pathOf(namespace))).json
    assert.deepEqual([windowHours, containers[0].reason], [240, 'capture_gap'])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: with more than 5 000 rows it is insufficient', async () => {
    const { namespace } = await workload()
    const store = (from: number, to: number) => sql`
      insert into runtime_capability (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted,
                                      probed, count, first_seen, last_seen, last_reported, last_post)
      select 'primary', ${namespace}, 'Deployment', 'web', 'app', '', 'CAP_' || n, true, false, 1, now(), now(), now(), gen_random_uuid()
      from generate_series(${from}::int, ${to}::int) n`
    await store(1, 5_000)
    const whole = await only(namespace)
    assert.deepEqual([whole.reason, whole.used.length, whole.recommendation.add.length], [null, 5_000, 5_000])
    await store(5_001, 5_001)
    const cut = await only(namespace)
    assert.deepEqual(
      [cut.reason, cut.reasonDetail, cut.evidence, cut.recommendation],
      ['rows_truncated', null, 'insufficient', null],
    )
    await sql`update workload_container set state = 'terminated' where pod_namespace = ${namespace}`
    assert.equal((await only(namespace)).reason, 'no_current_digest')
  })
})

describe('recommendation', () => {
  const probed = (capability: string) => ({ capability, probed: true })
  const recommended = async (shown: Shown) => {
    const { recommendation, unusedAdded } = await only((await workload(shown)).namespace)
    const { reason: _, ...omitted } = recommendation.probedOmitted[0] ?? { reason: null }
    return { ...recommendation, probedOmitted: omitted.capability ?? null, unusedAdded }
  }

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: nothing used: all are dropped and none is added', async () => {
    const { namespace } = await workload({ security: { capabilitiesAdd: ['ALL', 'CHOWN', 'all'] } })
    const { recommendation, unusedAdded } = await only(namespace)
    assert.deepEqual(recommendation, { drop: ['ALL'], add: [], probedKept: [], probedOmitted: [] })
    assert.deepEqual(unusedAdded, ['CHOWN'])
  })

  for (const [what, shown] of [
    ['of a privileged container', { security: { privileged: true } }],
    ['of an ephemeral container', { kind: 'ephemeral' }],
  ] as const)
    test(`GET /workloads/{namespace}/{kind}/{name}/capabilities 200: SYS_ADMIN that is only probed is kept ${what}`, async () => {
      const found = await recommended({ ...shown, checks: [probed('SYS_ADMIN'), { capability: 'CHOWN' }] })
      assert.deepEqual(found, {
        ...{ drop: ['ALL'], add: ['CHOWN', 'SYS_ADMIN'], probedKept: ['SYS_ADMIN'] },
        ...{ probedOmitted: null, unusedAdded: [] },
      })
    })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: SYS_ADMIN that is used and probed is added', async () => {
    const found = await recommended({ checks: [probed('SYS_ADMIN'), { capability: 'SYS_ADMIN' }] })
    assert.deepEqual(
      [found.add, found.probedKept, found.probedOmitted, found.requires],
      [...[['SYS_ADMIN'], [], null, undefined]],
    )
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: what was denied, or refused while probed, is not added', async () => {
    const found = await recommended({
      checks: [
        { capability: 'KILL', granted: false },
        { capability: 'MKNOD', granted: false, probed: true },
      ],
      security: { capabilitiesAdd: ['KILL', 'MKNOD', 'net_raw'] },
    })
    assert.deepEqual([found.add, found.unusedAdded], [[], ['KILL', 'MKNOD', 'net_raw']])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: what is added in small letters or with a prefix is known', async () => {
    const found = await recommended({
      checks: [{ capability: 'CHOWN' }, { capability: 'NET_ADMIN' }, { capability: 'CAP_41' }],
      security: { capabilitiesAdd: ['chown', 'CAP_NET_ADMIN', 'cap_41', 'CAP_KILL', 'CAP_ALL'] },
    })
    assert.deepEqual(found.unusedAdded, ['CAP_KILL'])
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 200: the newest running digest says what is added, any what is privileged', async () => {
    const { namespace, post } = await workload({
      security: { privileged: true, capabilitiesAdd: ['CHOWN'] },
      checks: [probed('SYS_ADMIN')],
    })
    const second = newDigest()
    await age(sql, 10)
    const pod_name = `${post.pod_name}-2`
    const now = container('app', second, { security_context: { capabilitiesAdd: ['KILL'] } })
    await ok('/pod/spec', replica(namespace, [now], { pod_name }))
    await ok('/runtime/coverage', [watched(namespace, pod_name, { image_digest: second })])
    const { unusedAdded, recommendation } = await only(namespace)
    assert.deepEqual([unusedAdded, recommendation.add], [['KILL'], ['SYS_ADMIN']])
  })
})

const watchedIn: Record<(typeof WATCHED)[number], Fields | null> = {
  whole: {},
  nobody: null,
  untracked: { cap_probe: false },
  partial: { cap_hook: 'security_capable' },
  late: { start_mode: 'backfill' },
}
/** The answer of the model for a container. */
// biome-ignore lint/suspicious/noExplicitAny: the answer is compared as a whole.
function comparable({ evidence, reason, used, denied, probed, recommendation, unusedAdded }: any) {
  const counts = (list: Fields[]) => list.map(({ capability, count }) => ({ capability, count }))
  const names = (list: Fields[]) => list.map(({ capability }) => capability)
  return {
    ...{ evidence, reason, used: counts(used), denied: counts(denied), probed: counts(probed), unusedAdded },
    recommendation: recommendation && { ...recommendation, probedOmitted: names(recommendation.probedOmitted) },
  }
}
const drawnContainer: fc.Arbitrary<DrawnContainer> = fc.record({
  kind: fc.constantFrom('regular', 'regular', 'init', 'ephemeral'),
  isPrivileged: fc.nat(3).map((n) => n === 0),
  isRunning: fc.nat(5).map((n) => n > 0),
  added: fc.subarray(['ALL', ...CAPABILITIES]),
  watched: fc.constantFrom('whole', 'whole', 'whole', 'nobody', 'untracked', 'partial', 'late'),
  checks: fc.array(
    fc.record({
      capability: fc.constantFrom(...CAPABILITIES),
      granted: fc.boolean(),
      probed: fc.boolean(),
      isOfOldImage: fc.boolean(),
      count: fc.nat(9),
    }),
    { maxLength: 8 },
  ),
})

test(`GET /workloads/{namespace}/{kind}/{name}/capabilities 200: ${RUNS} random workloads are judged as the model says`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(drawnContainer, { minLength: 1, maxLength: 3 }), async (drawn) => {
      const namespace = newNamespace()
      const images = drawn.map(newDigest)
      const post = replica(
        namespace,
        drawn.map(({ kind, isPrivileged, isRunning, added }, n) =>
          container(`c${n}`, images[n], {
            ...{ kind, state: isRunning ? 'running' : 'terminated' },
            security_context: { privileged: isPrivileged, capabilitiesAdd: added },
          }),
        ),
      )
      await ok('/pod/spec', post)
      const beats = drawn.flatMap(({ watched: how }, n) => {
        const fields = watchedIn[how]
        const one = { image_digest: images[n], container_name: `c${n}` }
        return fields ? [watched(namespace, String(post.pod_name), { ...one, ...fields })] : []
      })
      await ok('/runtime/coverage', beats)
      const entries = drawn.flatMap(({ checks: all }, n) =>
        all.map(({ isOfOldImage, ...fields }) =>
          checks({
            ...{ pod_namespace: namespace, container_name: `c${n}`, ...fields },
            image_digest: isOfOldImage ? DIGEST : images[n],
          }),
        ),
      )
      for (const half of [entries.slice(0, entries.length / 2), entries.slice(entries.length / 2)])
        await take(app, half)
      const { containers } = await read(namespace)
      assert.deepEqual(containers.map(comparable), drawn.map(expected))
    }),
    { numRuns: RUNS },
  )
})

describe('refusals', () => {
  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 400: a part of the path that is blank, too long or has a slash', async () => {
    const long = 'é'.repeat(127)
    for (const [namespace, kind, name, part] of [
      [' ', 'K', 'n', 'namespace'],
      ['n', '\t', 'n', 'kind'],
      ['n', 'K', '  ', 'name'],
      [long, 'K', 'n', 'namespace'],
      ['n', long, 'n', 'kind'],
      ['n', 'K', long, 'name'],
      ['n', 'K', 'a\0', 'name'],
      ['a/b', 'K', 'n', 'namespace'],
      ['n', 'a/b', 'n', 'kind'],
      ['n', 'K', '/', 'name'],
    ] as const) {
      const answer = await app.get(pathOf(namespace, name, kind))
      assert.equal(answer.status, 400, part)
      assert.match(answer.headers.get('content-type')!, /^text\/plain/)
      assert.match(answer.text, new RegExp(`^Path deserialize error: ${part}: `))
    }
    assert.equal((await app.get(pathOf('n'.repeat(253), 'n'.repeat(253), 'K'.repeat(253)))).status, 200)
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 401: without a token', async () => {
    assertUnauthorized(await guarded.get(NOBODY))
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 503: a cancelled statement', async () => {
    await whileRefused(guarded.sql, 'runtime_capability', async () =>
      assertDatabaseBusy(await guarded.get(NOBODY, { token })),
    )
  })

  test('GET /workloads/{namespace}/{kind}/{name}/capabilities 503: charged 5 200 rows of 512 bytes', async () => {
    const { budget } = guarded.deps
    const spent = await budget.acquire(budget.totalKib - 1)
    assertShed(await guarded.get(NOBODY, { token }), CHARGE_KIB, budget.totalKib)
    spent()
  })
})
