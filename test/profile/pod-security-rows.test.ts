import assert from 'node:assert/strict'
import { test } from 'node:test'
import { digestOf } from '../support/images.ts'
import { caveatKinds, inPod, judged, row, SAFE } from './pod-security.ts'

const [LOW, HIGH] = [digestOf('one'), digestOf('two')].sort() as [string, string]
const at = (lastSeen: string, fields: object = {}) => ({ lastSeen, ...fields })
const ENDED = { isRunning: false, state: 'terminated' } as const
const GONE = { ...ENDED, isCurrent: false }

/** Rows are judged alike in any order. */
const both = (...rows: readonly ReturnType<typeof row>[]) => [judged(rows), judged(rows.toReversed())] as const

test('a container is judged from its newest row that runs', () => {
  for (const it of both(
    row('app', { ...SAFE, privileged: true }, at('2026-05-01T09:59:59Z', { digest: LOW })),
    row('app', SAFE, at('2026-05-01T10:00:00Z', { digest: HIGH })),
    row('app', { ...SAFE, runAsUser: 0 }, at('2026-05-01T11:00:00Z', { digest: digestOf('three'), ...ENDED })),
  )) {
    assert.deepEqual([it.containers[0]!.digest, it.containers[0]!.source], [HIGH, 'running'])
    assert.equal(it.level, 'restricted')
  }
})

test('of rows seen at the same time the one with the first digest counts', () => {
  for (const it of both(row('app', SAFE, { digest: HIGH }), row('app', { ...SAFE, runAsUser: 0 }, { digest: LOW }))) {
    assert.deepEqual([it.containers[0]!.digest, it.containers[0]!.securityContext.runAsUser], [LOW, 0])
  }
})

test('times with and without a fraction of a second compare as times', () => {
  for (const [later, sooner] of [
    ['2026-05-01T10:00:00.001Z', '2026-05-01T10:00:00Z'],
    ['2026-05-01T10:00:00.500001Z', '2026-05-01T10:00:00.500Z'],
    ['2026-05-01T10:00:01Z', '2026-05-01T10:00:00.999999Z'],
  ] as const)
    for (const it of both(row('app', SAFE, at(later, { digest: HIGH })), row('app', {}, at(sooner, { digest: LOW }))))
      assert.equal(it.containers[0]!.digest, HIGH, later)
})

test('a container of which no row runs is judged from its newest current one', () => {
  for (const it of both(
    row('setup', SAFE, at('2026-05-01T10:00:00Z', { digest: LOW, kind: 'init', ...ENDED })),
    row('setup', {}, at('2026-05-01T11:00:00Z', { digest: HIGH, kind: 'init', ...GONE })),
  )) {
    const [setup] = it.containers
    assert.deepEqual([setup!.source, setup!.digest, setup!.kind], ['last_known', LOW, 'init'])
    assert.deepEqual(it.staleContainers, [])
  }
})

test('a container without a current row is listed as stale and counts nowhere else', () => {
  const old = { ...GONE, lastSeen: '2026-04-30T10:00:00Z', firstSeen: '2026-01-01T10:00:00Z' }
  for (const it of both(
    row('app'),
    row('proxy', { privileged: true }, { ...old, digest: LOW, kind: 'ephemeral', podSecurity: { hostPID: true } }),
    row('proxy', {}, { ...old, digest: HIGH, lastSeen: '2026-04-29T10:00:00Z' }),
  )) {
    assert.deepEqual(it.staleContainers, [
      { name: 'proxy', kind: 'ephemeral', digest: LOW, lastSeen: '2026-04-30T10:00:00Z' },
    ])
    assert.deepEqual(
      it.reasons.map(({ code }) => code),
      ['pss_unverified', 'stale_containers_excluded'],
    )
    assert.deepEqual(
      [it.containers.map(({ name }) => name), it.level, it.findings, it.recommendation, it.pod.hostPID],
      [['app'], 'restricted', [], null, null],
    )
    assert.equal(it.coverage.observedSince, '2026-04-01T10:00:00Z')
  }
})

test('without a current container there is no level, and the reason says whether any was known', () => {
  for (const [rows, code, stale] of [
    [[], 'no_inventory', 0],
    [[row('app', {}, GONE)], 'only_stale_containers', 1],
  ] as const) {
    const it = judged(rows)
    assert.deepEqual([it.status, it.level, it.levelConfidence, it.recommendation], ['unknown', null, null, null])
    assert.deepEqual([it.coverage.level, it.coverage.fraction, it.coverage.observedSince], ['none', null, null])
    assert.deepEqual(
      it.reasons.map((reason) => reason.code),
      [code],
    )
    assert.equal(it.unevaluatedChecks.length, 9)
    assert.deepEqual([it.pod.known, it.pod.failing, it.containers, it.findings], [false, [], [], []])
    assert.equal(it.staleContainers.length, stale)
  }
})

test('the fields of the pod are those of the newest row that is judged, known or not', () => {
  const older = row('app', SAFE, at('2026-05-01T10:00:00Z', { podSecurity: { hostNetwork: true } }))
  for (const it of both(older, row('side', SAFE, at('2026-05-01T10:00:01Z', { podSecurity: { hostPID: true } }))))
    assert.deepEqual([it.pod.hostNetwork, it.pod.hostPID], [null, true])
  for (const it of both(older, row('side', SAFE, at('2026-05-01T10:00:01Z', { podSecurity: {} }))))
    assert.deepEqual([it.pod.known, it.pod.hostNetwork], [false, null])
  // The newest row of `app` does not run, so an older one is judged.
  const notJudged = row(
    'app',
    SAFE,
    at('2026-05-01T12:00:00Z', { digest: LOW, podSecurity: { hostIPC: true }, ...ENDED }),
  )
  for (const it of both(older, notJudged)) assert.deepEqual([it.pod.hostNetwork, it.pod.hostIPC], [true, null])
})

test('containers come by name, and the level is the lowest of the pod and of all of them', () => {
  const rows = [row('c', { ...SAFE, privileged: true }), row('a'), row('B', { ...SAFE, runAsUser: 0 })]
  for (const it of both(...rows)) {
    assert.deepEqual(
      it.containers.map(({ name, level }) => [name, level]),
      [
        ['B', 'baseline'],
        ['a', 'restricted'],
        ['c', 'privileged'],
      ],
    )
    assert.equal(it.level, 'privileged')
    assert.match(it.reasons[0]!.message, /failed by c \(regular\)$/)
  }
})

test('the first reason names the pod first, then the containers that set the level, with their kinds', () => {
  const bad = { ...SAFE, privileged: true }
  const it = judged(
    inPod({ hostIPC: true }, row('z', bad), row('a b', bad, { kind: 'init' }), row('m', { ...SAFE, runAsUser: 0 })),
  )
  assert.equal(it.reasons[0]!.code, 'pss_fails_baseline')
  assert.match(it.reasons[0]!.message, /failed by pod spec, "a b" \(init\), z \(regular\)$/)
  const many = judged(Array.from({ length: 13 }, (_, i) => row(`app-${i}`, { ...SAFE, runAsUser: 0 })))
  assert.equal(many.reasons[0]!.code, 'pss_fails_restricted')
  assert.match(many.reasons[0]!.message, /failed by app-0 \(regular\), .* \+3 more$/)
})

test('an ephemeral container counts, and a reason says that it cannot be patched', () => {
  const it = judged([row('app'), row('debug', { ...SAFE, privileged: true }, { kind: 'ephemeral' })])
  assert.deepEqual(
    it.reasons.map(({ code }) => code),
    ['pss_fails_baseline', 'ephemeral_unpatchable'],
  )
  assert.deepEqual([it.level, it.status, it.recommendation], ['privileged', 'risk', null])
  assert.deepEqual(
    it.findings.map(({ id }) => id),
    ['podSecurity.privileged/debug'],
  )
  const all = judged([...inPod({}, row('app'), row('debug', {}, { kind: 'ephemeral' }), row('old', SAFE, GONE))])
  assert.deepEqual(
    all.reasons.map(({ code }) => code),
    ['pss_fails_restricted', 'pod_fields_unknown', 'ephemeral_unpatchable', 'stale_containers_excluded'],
  )
})

test('an ephemeral container that fails nothing gives no reason', () => {
  const rows = [row('app', { ...SAFE, runAsUser: 0 }), row('debug', SAFE, { kind: 'ephemeral' })]
  const it = judged(rows)
  assert.deepEqual(
    it.reasons.map(({ code }) => code),
    ['pss_fails_restricted'],
  )
  assert.deepEqual(caveatKinds(it.recommendation!.caveats), ['unseen'])
})

test('a workload is observed since the first of its judged rows was seen', () => {
  for (const it of both(
    row('app', SAFE, { firstSeen: '2026-04-01T10:00:00.001Z' }),
    row('side', SAFE, { firstSeen: '2026-04-01T10:00:00Z' }),
    row('side', SAFE, { ...ENDED, digest: LOW, firstSeen: '2026-01-01T10:00:00Z' }),
  ))
    assert.equal(it.coverage.observedSince, '2026-04-01T10:00:00Z')
})
