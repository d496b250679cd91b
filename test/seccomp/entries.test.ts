/**
 * Entries of random states, in the list and one by one, against a model of the rules
 * (docs/contract.md#seccomp-profiles).
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import {
  byBytes,
  forgetSeccomp,
  hashOf,
  profilePath,
  type StoredDenial,
  type StoredNode,
  type StoredPod,
  type StoredResource,
  type StoredWatcher,
  type StoredWorkload,
  storeDenials,
  storeNodes,
  storePods,
  storeResources,
  storeWatchers,
  storeWorkloads,
  type WorkloadKey,
} from '../support/seccomp.ts'

const app = await startApp({ SECCOMP_PROFILES_CACHE_TTL_SECS: '0' })
const STALE_SECS = 900

interface State {
  workloads: StoredWorkload[]
  pods: StoredPod[]
  resources: StoredResource[]
  nodes: StoredNode[]
  watchers: StoredWatcher[]
  denials: StoredDenial[]
}

// ---------------------------------------------------------------- the model

const RANKS: Record<string, number> = { full: 0, high: 1, medium: 2, low: 3, unknown: 4, custom: 5 }
const levelOf = ({ level }: StoredPod) => (typeof level === 'string' && level in RANKS ? level : 'unknown')
const isOf = (key: WorkloadKey, other: WorkloadKey | null) =>
  other !== null && key.namespace === other.namespace && key.kind === other.kind && key.name === other.name
const before = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

function captureModel(key: WorkloadKey, { pods }: State) {
  const all = pods.filter(({ of, hasSyscalls }) => isOf(key, of) && hasSyscalls)
  all.sort((a, b) => RANKS[levelOf(b)]! - RANKS[levelOf(a)]! || before(a.name, b.name))
  const listed = all.slice(0, 20).map((pod) => ({ name: pod.name, level: levelOf(pod) }))
  return {
    level: listed[0]?.level ?? 'unknown',
    complete: all.length > 0 && all.every((pod) => levelOf(pod) === 'full'),
    pods: listed,
    more: all.length - listed.length,
    incomplete: all.filter((pod) => levelOf(pod) !== 'full').length,
  }
}

function resourceModel({ names, ...key }: StoredWorkload, { resources, nodes }: State) {
  const all = resources.filter(({ namespace, kind, workload }) =>
    isOf(key, { namespace, kind: kind ?? '', name: workload ?? '' }),
  )
  all.sort((a, b) => before(b.updatedAt!, a.updatedAt!) || before(a.name, b.name))
  const [one] = all
  if (one === undefined) return { count: 0, cr: null }
  const path = `kguardian/${one.namespace}/${one.name}.json`
  const live = nodes.filter(({ secondsAgo }) => secondsAgo! < STALE_SECS)
  const present = live.filter(({ files }) => path in files)
  const ready = present.filter(({ files }) => one.hash !== '' && files[path] === one.hash)
  const state = live.length === 0 || ready.length === 0 ? 'Pending' : ready.length === live.length ? 'Ready' : 'Partial'
  const missing = byBytes(names.filter((name) => !one.names!.includes(name)))
  const isUnwritten = one.ready === 0 && one.total === 0 && one.state === 'Pending'
  const cr = {
    name: one.name,
    defaultAction: 'SCMP_ACT_ERRNO',
    hash: one.hash,
    syscallCount: new Set(one.names).size,
    architectures: ['SCMP_ARCH_X86_64'],
    localhostProfile: path,
    distribution: { ready: ready.length, total: live.length, state, present: present.length },
    statusDistribution: isUnwritten ? null : { ready: one.ready, total: one.total, state: one.state },
    drift: {
      missing,
      extra: byBytes(one.names!.filter((name) => !names.includes(name))),
      inSync: missing.length === 0,
    },
    updatedAt: one.updatedAt,
  }
  return { count: all.length, cr }
}

const isLive = ({ capturing, interval, secondsAgo }: StoredWatcher) =>
  capturing && secondsAgo! < Math.min(Math.max(300, 3 * (interval ?? 0)), 1_800)

/** Why the denials are null, and what may be named. */
function gapModel(
  key: WorkloadKey,
  state: State,
): { reason: string | null; cause: string | null; named: readonly string[] } {
  const { watchers, denials } = state
  if (denialsModel(key, state) !== null) return { reason: null, cause: null, named: [] }
  if (watchers.some(isLive)) {
    const blind = denials.filter(
      (one) => one.namespace === key.namespace && (one.kind === null || one.workload === null),
    )
    return { reason: 'unattributed_denials', cause: 'unattributed', named: blind.map(({ pod }) => pod) }
  }
  // Of equal ages the one that was stored last is the newest.
  const newest = watchers.toReversed().toSorted((a, b) => a.secondsAgo! - b.secondsAgo!)[0]
  if (newest === undefined) return { reason: 'no_node_watching', cause: null, named: [] }
  return {
    reason: 'no_node_watching',
    cause: newest.capturing ? 'drain_late' : 'probe_detached',
    named: [newest.name],
  }
}

function denialsModel(key: WorkloadKey, { watchers, denials }: State) {
  const isBlind = denials.some(
    ({ namespace, kind, workload }) => namespace === key.namespace && (kind === null || workload === null),
  )
  if (isBlind || !watchers.some(isLive)) return null
  const all = denials.filter(({ namespace, kind, workload }) =>
    isOf(key, { namespace, kind: kind ?? '', name: workload ?? '' }),
  )
  const last = all.map(({ lastSeen }) => lastSeen!).sort()
  return {
    total: all.reduce((sum, { count }) => sum + count!, 0),
    syscalls: byBytes(all.map(({ syscall }) => syscall)).slice(0, 50),
    actions: byBytes(all.map(({ action }) => action!)).slice(0, 16),
    lastSeen: last.length === 0 ? null : `${last.at(-1)}Z`,
  }
}

const SHOWN: Record<string, string> = { x86_64: 'SCMP_ARCH_X86_64', aarch64: 'SCMP_ARCH_AARCH64' }

function entryModel(workload: StoredWorkload, state: State) {
  const { namespace, kind, name, names, arches = [] } = workload
  const capture = captureModel(workload, state)
  const { count, cr } = resourceModel(workload, state)
  const suggestedName = `${kind}-${name}`.toLowerCase()
  return {
    namespace,
    kind,
    name,
    hash: hashOf(names, arches),
    syscallCount: new Set(names).size,
    architectures: byBytes(arches.flatMap((arch) => SHOWN[arch] ?? [])),
    updatedAt: workload.updatedAt,
    capture,
    captureComplete: capture.complete,
    suggestedName,
    recommendedSnippet: {
      seccompProfile: {
        type: 'Localhost',
        localhostProfile: `kguardian/${namespace}/${cr?.name ?? suggestedName}.json`,
      },
    },
    crCount: count,
    cr,
    denials: denialsModel(workload, state),
  }
}

// ---------------------------------------------------------------- random states

const NAMES = ['read', 'write', 'a_b', 'a-b', 'ab', 'B', '\u{e9}', '\u{ff5e}', '\u{1f600}']
const some = <T>(...values: T[]) => fc.constantFrom(...values)
const namespace = some('a', 'b')
const key = fc.record({ namespace, kind: some('Deployment', 'Job'), name: some('x', 'y') })
const names = fc.subarray(NAMES)
const time = some('2026-05-01T10:00:00', '2026-05-01T10:00:00.500', '2026-05-02T10:00:00.000001')
const byKey = <T extends WorkloadKey>(one: T) => [one.namespace, one.kind, one.name].join('/')
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null, freq: 8 })

const resource: fc.Arbitrary<StoredResource> = fc.record({
  namespace,
  name: some('c1', 'c2', 'c3'),
  kind: orNull(some('Deployment', 'Job')),
  workload: orNull(some('x', 'y')),
  names,
  hash: some('', 'h1', 'h2'),
  ready: some(0, 1),
  total: some(0, 3),
  state: some('Pending', 'Partial'),
  updatedAt: time,
})
const files = fc.dictionary(
  fc.tuple(namespace, some('c1', 'c2', 'c3')).map(([of, name]) => `kguardian/${of}/${name}.json`),
  some('', 'h1', 'h2', null),
  { maxKeys: 5, noNullPrototype: true },
)
const denial: fc.Arbitrary<StoredDenial> = fc.record({
  pod: some('p', 'q'),
  namespace: some('a', 'a', 'a', 'b', 'c'),
  kind: fc.option(some('Deployment', 'Job'), { nil: null, freq: 60 }),
  workload: fc.option(some('x', 'y'), { nil: null, freq: 60 }),
  syscall: some(...NAMES),
  action: some('SCMP_ACT_LOG', 'SCMP_ACT_ERRNO', 'act'),
  count: fc.integer({ min: 1, max: 1e12 }),
  lastSeen: time,
})
const states: fc.Arbitrary<State> = fc.record({
  workloads: fc.uniqueArray(
    fc
      .tuple(key, names, fc.subarray(['x86_64', 'aarch64', 'riscv64']), time)
      .map(([of, seen, arches, updatedAt]) => ({ ...of, names: seen, arches, updatedAt })),
    { selector: byKey },
  ),
  pods: fc
    .array(
      fc.record({
        of: orNull(key),
        level: some('full', 'full', 'high', 'medium', 'low', 'custom', 'other', null),
        hasSyscalls: some(true, true, false),
        isDead: fc.boolean(),
      }),
      { maxLength: 60 },
    )
    .map((pods) => pods.map((pod, i) => ({ ...pod, name: `p-${(i * 7) % 60}-${i}` }))),
  resources: fc.uniqueArray(resource, { maxLength: 6, selector: (one) => `${one.namespace}/${one.name}` }),
  nodes: fc.uniqueArray(
    fc.record({ name: some('n1', 'n2', 'n3', 'n4'), files, secondsAgo: some(10, 10, 800, 1_000) }),
    {
      selector: ({ name }) => name,
    },
  ),
  watchers: fc.uniqueArray(
    fc.record({
      name: some('n1', 'n2'),
      capturing: some(true, true, false),
      interval: some(null, 10, 200, 600),
      secondsAgo: some(10, 400, 1_000, 2_500),
    }),
    { selector: ({ name }) => name },
  ),
  denials: fc.array(denial, { maxLength: 25 }),
})

test('GET /seccomp/profiles 200: in any state the list and the single answer equal those of the model', async () => {
  const { sql } = app
  await fc.assert(
    fc.asyncProperty(states, async (state) => {
      await forgetSeccomp(sql)
      await storeWorkloads(sql, state.workloads)
      await storePods(sql, state.pods)
      await storeResources(sql, state.resources)
      await storeNodes(sql, state.nodes)
      await storeWatchers(sql, state.watchers)
      await storeDenials(sql, state.denials)
      const list = (await app.get('/seccomp/profiles')).json as (WorkloadKey & object)[]
      const expected = state.workloads.map((one) => entryModel(one, state))
      expected.sort((a, b) => before(byKey(a), byKey(b)))
      assert.deepEqual(list, expected)
      const single = await Promise.all(list.map(async (one) => (await app.get(profilePath(one))).json))
      for (const [i, { profile, denialsReason, denialsReasonDetail, ...summary }] of single.entries()) {
        assert.deepEqual(summary as unknown, list[i])
        const gap = gapModel(summary as unknown as WorkloadKey, state)
        assert.equal(denialsReason, gap.reason)
        assert.equal(denialsReasonDetail?.cause ?? null, gap.cause)
        assert.ok(
          gap.named.length === 0 || gap.named.includes(denialsReasonDetail.nodeName ?? denialsReasonDetail.podName),
        )
        const seen = state.workloads.find((one) => byKey(one) === byKey(summary))!
        const allowed = byBytes(seen.names).filter((name) => /^[a-z][a-z0-9_]{0,63}$/.test(name))
        assert.deepEqual(profile.syscalls, allowed.length === 0 ? [] : [{ names: allowed, action: 'SCMP_ACT_ALLOW' }])
        assert.deepEqual(profile.architectures, summary.architectures)
      }
    }),
    { numRuns: depth(15, 120) },
  )
})
