/** A diff applied to the older side gives the newer, on random pairs; and nothing is new that is older than its record. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type ComponentCount, componentsDiff } from '../../lib/changes/components.ts'
import { confinementDiff } from '../../lib/changes/confinement.ts'
import { type Edge, edgeKey, edgesDiff, isExposing, isToOutside } from '../../lib/changes/edges.ts'
import { type FindingPair, type FindingSide, findingsDiff } from '../../lib/changes/findings.ts'
import { changedImages, type ImageRecord, imagesAt, imagesDiff, isRecordedAt } from '../../lib/changes/images.ts'
import { compareWeights, maskOf, SIGNALS } from '../../lib/changes/order.ts'
import { type SyscallRecord, syscallsDiff } from '../../lib/changes/syscalls.ts'
import { depth } from '../support/depth.ts'
import { contained, POD } from '../support/profile-versions.ts'

const RUNS = { numRuns: depth(200, 10_000) }
const sorted = (list: readonly string[]) => [...list].sort()

type OneComponent = Pick<ComponentCount, 'name' | 'purl' | 'version'>
const oneComponent: fc.Arbitrary<OneComponent> = fc.record({
  name: fc.constantFrom('a', '__proto__'),
  purl: fc.constantFrom(null, 'pkg:deb/a'),
  version: fc.constantFrom(null, '', '1', '2', '10'),
})
const manyComponents = fc.array(oneComponent, { maxLength: 12, size: 'max' })

/** Counts as the statement gives them: of each version on either side, also where both are equal. */
function countsOf(from: readonly OneComponent[], to: readonly OneComponent[]): ComponentCount[] {
  const keys = new Map([...from, ...to].map((one) => [JSON.stringify(one), one]))
  const times = (list: readonly OneComponent[], key: string) => list.filter((one) => JSON.stringify(one) === key).length
  return [...keys].map(([key, one]) => ({
    ...one,
    type: one.purl === null ? 'deb' : null,
    from: times(from, key),
    to: times(to, key),
  }))
}

test('components: the diff applied to the older side gives the newer, versions as a multiset', () => {
  fc.assert(
    fc.property(manyComponents, manyComponents, (from, to) => {
      const { added, removed, changed } = componentsDiff(countsOf(from, to))
      const text = (name: string, purl: string | null, version: string | null) => JSON.stringify([name, purl, version])
      const bag = from.map(({ name, purl, version }) => text(name, purl, version))
      const take = (one: string, count: number) => {
        for (let i = 0; i < count; i++) {
          const place = bag.indexOf(one)
          assert.notEqual(place, -1, `${one} is not there to be removed`)
          bag.splice(place, 1)
        }
      }
      const put = (one: string, count: number) => bag.push(...Array.from({ length: count }, () => one))
      for (const one of removed) take(text(one.name, one.purl, one.version), one.count)
      for (const one of changed) {
        assert.notEqual(one.from, one.to)
        take(text(one.name, one.purl, one.from), one.count)
      }
      for (const one of changed) put(text(one.name, one.purl, one.to), one.count)
      for (const one of added) put(text(one.name, one.purl, one.version), one.count)
      assert.deepEqual(sorted(bag), sorted(to.map(({ name, purl, version }) => text(name, purl, version))))
      for (const all of [added, removed, changed]) {
        const once = new Set(all.map(({ count: _, ...one }) => JSON.stringify(one)))
        assert.equal(once.size, all.length, 'what happened several times is one item with a count')
      }
      // Versions that could be paired are changes.
      const isLeft = (one: { name: string; purl: string | null }) => `${one.name} ${one.purl}`
      const both = added.filter((one) => removed.some((other) => isLeft(one) === isLeft(other)))
      assert.deepEqual(both, [])
    }),
    RUNS,
  )
})

test('components: a diff does not depend on the order of rows, nor on rows that are equal on both sides', () => {
  fc.assert(
    fc.property(manyComponents, manyComponents, (from, to) => {
      const counts = countsOf(from, to)
      const whole = componentsDiff(counts)
      assert.deepEqual(componentsDiff(counts.toReversed()), whole)
      assert.deepEqual(componentsDiff(counts.filter((one) => one.from !== one.to)), whole)
    }),
    RUNS,
  )
})

const texts = fc.uniqueArray(fc.constantFrom('1', '2', '3'), { maxLength: 3 }).map(sorted)
const findingSide: fc.Arbitrary<FindingSide> = fc.record(
  { severity: fc.integer({ min: 0, max: 5 }), versions: texts, fixedVersions: texts },
  { noNullPrototype: true },
)
const findingMap = fc.dictionary(fc.constantFrom('CVE-1 a', 'CVE-1 b', 'CVE-2 a', 'CVE-3 c'), findingSide, {
  noNullPrototype: true,
})

test('findings: the diff applied to the older side gives the newer', () => {
  fc.assert(
    fc.property(findingMap, findingMap, (from, to) => {
      const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])]
      const pairs = keys.map((key): FindingPair => {
        const [id, packageName] = key.split(' ') as [string, string]
        return { id, package: packageName, kev: null, epss: null, from: from[key] ?? null, to: to[key] ?? null }
      })
      const { came, went, changed } = findingsDiff(pairs)
      const applied = { ...from }
      const keyOf = (one: FindingPair) => `${one.id} ${one.package}`
      for (const one of went) {
        assert.deepEqual([applied[keyOf(one)], one.to], [one.from, null])
        delete applied[keyOf(one)]
      }
      for (const one of came) {
        assert.equal(applied[keyOf(one)], undefined)
        applied[keyOf(one)] = one.to!
      }
      for (const one of changed) {
        assert.notDeepEqual(one.from, one.to)
        applied[keyOf(one)] = one.to!
      }
      assert.deepEqual(applied, to)
      const severities = came.map((one) => one.to!.severity)
      assert.deepEqual(severities, severities.toSorted())
    }),
    RUNS,
  )
})

/** Times of a day, which sort as text; a fraction comes after its second. */
const time = fc.integer({ min: 0, max: 19 }).map((n) => `2026-01-01T00:00:0${n >> 1}${n % 2 ? '.500' : ''}`)
const ran = fc
  .tuple(fc.constantFrom('app', 'side', 'init'), fc.constantFrom('A', 'B', 'C', 'D'), time, time)
  .map(([container, digest, one, other]) => {
    const [firstSeen, until] = sorted([one, other]) as [string, string]
    return { container, digest, imageRef: digest, firstSeen, until }
  })
const record: fc.Arbitrary<ImageRecord> = fc.record({
  rows: fc.uniqueArray(ran, { maxLength: 8, selector: ({ container, digest }) => `${container} ${digest}` }),
  isCut: fc.constant(false),
  keptSince: fc.option(time, { freq: 4 }),
})

test('images: what ran at a time is what its record covers, else the last that was seen before', () => {
  fc.assert(
    fc.property(record, time, (all, at) => {
      const found = imagesAt(all, at)
      const covering = all.rows.filter(({ firstSeen, until }) => firstSeen <= at && at <= until)
      if (typeof found === 'string') {
        if (found === 'no_inventory') assert.equal(all.rows.length, 0)
        else if (found === 'before_retention') assert.ok(at < all.keptSince!)
        else assert.ok(all.rows.every(({ firstSeen }) => firstSeen > at))
        return
      }
      if (covering.length > 0) assert.deepEqual([found.seenAt, found.rows], [at, covering])
      else {
        assert.ok(found.seenAt < at)
        assert.ok(found.rows.length > 0)
        assert.ok(found.rows.every(({ firstSeen, until }) => firstSeen <= found.seenAt && until >= found.seenAt))
        assert.ok(!all.rows.some(({ firstSeen, until }) => firstSeen <= at && until > found.seenAt))
      }
    }),
    RUNS,
  )
})

test('images: the diff applied to the older side gives the newer; an image that is new was first seen in the range', () => {
  fc.assert(
    fc.property(record, time, time, (all, one, other) => {
      const [from, to] = sorted([one, other]) as [string, string]
      const { value } = imagesDiff(all, from, to)
      const [old, now] = [imagesAt(all, from), imagesAt(all, to)]
      if (value === null) return assert.ok(typeof old === 'string' || typeof now === 'string')
      assert.ok(typeof old === 'object' && typeof now === 'object')
      const pairs = (side: 'from' | 'to') =>
        value.containers.flatMap((one) => one[side].map((digest) => `${one.container} ${digest}`)).sort()
      const rowsOf = ({ rows }: typeof old) => rows.map(({ container, digest }) => `${container} ${digest}`).sort()
      assert.deepEqual([pairs('from'), pairs('to')], [rowsOf(old), rowsOf(now)])
      const digests = ({ rows }: typeof old) => new Set(rows.map(({ digest }) => digest))
      const applied = digests(old)
      const { before, after } = changedImages(value)
      for (const digest of before) assert.ok(applied.delete(digest))
      for (const digest of after) assert.ok(!applied.has(digest) && applied.add(digest))
      assert.deepEqual(sorted([...applied]), sorted([...digests(now)]))
      for (const { at } of value.rollouts) assert.ok(from < at && at <= to)
      // Whatever runs now and was not rolled out in the range is older than it.
      for (const { container, digest, firstSeen } of now.rows)
        if (!value.rollouts.some((one) => one.container === container && one.digest === digest))
          assert.ok(firstSeen <= from)
      assert.ok(isRecordedAt(all, from))
    }),
    RUNS,
  )
})

test('images: more rows than were read are unknown', () => {
  const rows = [
    { container: 'app', digest: 'A', imageRef: 'A', firstSeen: '2026-01-01T00:00:00', until: '2026-01-09T00:00:00' },
  ]
  assert.equal(imagesAt({ rows, isCut: true, keptSince: null }, '2026-01-02T00:00:00'), 'too_many')
})

const peer = fc.constantFrom<Edge['peer']>(
  { kind: 'external', namespace: null, workloadKind: null, workloadName: null, name: null, ip: '1.1.1.1' },
  { kind: 'pod', namespace: 'shop', workloadKind: 'Deployment', workloadName: 'db', name: null, ip: null },
  { kind: 'pod', namespace: 'other', workloadKind: 'Deployment', workloadName: 'db', name: null, ip: null },
  { kind: 'node', namespace: null, workloadKind: null, workloadName: null, name: null, ip: '10.0.0.1' },
)
const edge: fc.Arbitrary<Edge> = fc
  .record({
    direction: fc.constantFrom('ingress' as const, 'egress' as const),
    protocol: fc.constantFrom('TCP', 'UDP'),
    port: fc.constantFrom('80', null),
    verdict: fc.constantFrom('ALLOW', 'DROP'),
    peer,
    times: fc.tuple(time, time).map(sorted),
    mayLive: fc.boolean(),
  })
  .map(({ times: [firstSeenAt, lastNewAt], ...rest }) => ({
    ...rest,
    firstSeenAt: firstSeenAt!,
    lastNewAt: lastNewAt!,
  }))
const edges = fc.uniqueArray(edge, { maxLength: 8, selector: edgeKey })

test('edges: those of before and those first seen are those of now; nothing is new that is older than the record', () => {
  fc.assert(
    fc.property(
      edges,
      fc.option(time),
      fc.option(time),
      fc.boolean(),
      time,
      time,
      (all, since, kept, isOld, ...times) => {
        const [from, to] = sorted(times) as [string, string]
        const record = {
          ...{ edges: all, isCut: false, areFlowsCounted: true, observedSince: since, keptSince: kept },
          isRecorded: isOld,
        }
        const { value, gaps } = edgesDiff(record, from, to)
        const isKnown = since !== null && since <= from && (isOld || all.some((one) => one.firstSeenAt <= from))
        if (kept !== null && from < kept) return assert.deepEqual([value, gaps[0]!.reason], [null, 'before_retention'])
        if (!isKnown) return assert.deepEqual([value, gaps[0]!.reason], [null, 'not_recorded_then'])
        const keys = (some: readonly Edge[]) => sorted(some.map(edgeKey))
        const at = (moment: string) => all.filter(({ firstSeenAt }) => firstSeenAt <= moment)
        assert.deepEqual(sorted([...keys(at(from)), ...keys(value!.firstSeen)]), keys(at(to)))
        const old = all.filter(({ lastNewAt }) => lastNewAt <= from)
        assert.deepEqual(keys(value!.goneQuiet), keys(old.filter(({ mayLive }) => !mayLive)))
        assert.equal(value!.goneQuiet.length + value!.maybeQuiet, old.length)
      },
    ),
    RUNS,
  )
})

test('edges: unknown while flows are counted for the first time, or with more than were read', () => {
  const record = {
    edges: [],
    isCut: true,
    areFlowsCounted: true,
    observedSince: '2026',
    keptSince: null,
    isRecorded: true,
  }
  assert.equal(edgesDiff({ ...record, areFlowsCounted: false }, '2027', '2028').gaps[0]!.reason, 'not_counted')
  assert.equal(edgesDiff(record, '2027', '2028').gaps[0]!.reason, 'too_many')
})

test('edges: what exposes a workload, and what leaves the cluster', () => {
  const of = (direction: Edge['direction'], kind: Edge['peer']['kind'], namespace: string | null, verdict = 'ALLOW') =>
    ({ direction, verdict, peer: { kind, namespace } }) as Edge
  const exposing: [Edge, boolean][] = [
    [of('ingress', 'external', null), true],
    [of('ingress', 'unresolved', null), true],
    [of('ingress', 'pod', 'other'), true],
    [of('ingress', 'pod', 'shop'), false],
    [of('ingress', 'node', null), false],
    [of('egress', 'external', null), false],
    [of('ingress', 'external', null, 'DROP'), false],
  ]
  for (const [one, expected] of exposing) assert.equal(isExposing(one, 'shop'), expected, JSON.stringify(one))
  assert.equal(isToOutside(of('egress', 'external', null)), true)
  for (const one of [
    of('egress', 'external', null, 'DROP'),
    of('egress', 'unresolved', null),
    of('ingress', 'external', null),
  ])
    assert.equal(isToOutside(one), false)
})

const syscallRecord: fc.Arbitrary<SyscallRecord> = fc
  .array(fc.tuple(fc.option(time), fc.subarray([0, 1, 2])), { maxLength: 6 })
  .chain((rows) =>
    fc.record({
      names: fc.constant(rows.map((_, i) => `call_${i}`)),
      firstSeen: fc.constant(rows.map(([at]) => at)),
      images: fc.constant(rows.map(([, images]) => images)),
      digests: fc.constantFrom(['A', 'B', 'C'], ['A', 'B']),
      resetAt: fc.option(time, { freq: 2 }),
      updatedAt: time.map((at) => sorted([at, ...rows.flatMap(([first]) => first ?? [])]).at(-1)!),
      isComplete: fc.boolean(),
    }),
  )

test('syscalls: what was first seen in the range, of a set that had begun before; what only images before made', () => {
  fc.assert(
    fc.property(syscallRecord, fc.subarray(['A', 'B', 'C']), time, time, (all, before, ...times) => {
      const [from, to] = sorted(times) as [string, string]
      const now = ['A', 'B', 'C'].filter((digest) => !before.includes(digest))
      const { value, gaps } = syscallsDiff(all, { before, now }, from, to)
      if (value === null) {
        if (gaps[0]!.reason === 'reset_since') return assert.ok(all.resetAt! > from)
        return assert.ok(!all.firstSeen.some((at) => at !== null && at <= from) && all.updatedAt > from)
      }
      assert.ok(all.resetAt === null || all.resetAt <= from)
      assert.ok(all.updatedAt <= from || all.firstSeen.some((at) => at !== null && at <= from), 'it had begun')
      const seenBy = (moment: string) => all.names.filter((_, i) => (all.firstSeen[i] ?? '') <= moment)
      assert.deepEqual(sorted([...seenBy(from), ...value.firstSeen.map(({ name }) => name)]), sorted(seenBy(to)))
      if (value.onlyBefore === null) {
        assert.equal(gaps[0]!.reason, all.isComplete ? 'image_not_recorded' : 'capture_incomplete')
        return
      }
      const madeBy = (i: number, some: string[]) =>
        all.images[i]!.some((place) => some.includes(all.digests[place] ?? 'none'))
      assert.deepEqual(
        value.onlyBefore,
        before.length === 0 ? [] : all.names.filter((_, i) => madeBy(i, before) && !madeBy(i, now)),
      )
    }),
    RUNS,
  )
})

test('syscalls: unknown without a set; what only images before made is unknown where these are', () => {
  assert.equal(syscallsDiff(null, null, '2026', '2027').gaps[0]!.reason, 'no_syscalls')
  const all = { names: [], firstSeen: [], images: [], digests: [], resetAt: null, updatedAt: '2025', isComplete: true }
  const { value, gaps } = syscallsDiff(all, null, '2026', '2027')
  assert.deepEqual(
    [value?.onlyBefore, gaps[0]!.part, gaps[0]!.reason],
    [null, 'syscallsOnlyBefore', 'not_recorded_then'],
  )
})

test('confinement: checks that fail newly, a seccomp profile that no longer enforces, and what is not stored', () => {
  const cr = (defaultAction: string) => ({ name: 'web', hash: 'h', defaultAction })
  const version = (revision: number, fields: object, seccompProfile: ReturnType<typeof cr> | null) => ({
    ...{ revision, createdAt: '2026-01-01T00:00:00', seccompProfile },
    podSecurity: { level: 'baseline' as const, pod: POD, containers: { web: contained(fields) } },
  })
  const [strict, loose] = [
    version(1, { allowPrivilegeEscalation: false }, cr('SCMP_ACT_ERRNO')),
    version(2, { privileged: true }, cr('SCMP_ACT_LOG')),
  ]
  const weaker = confinementDiff({ from: strict, to: loose, oldestRevision: 1 }).value!
  assert.deepEqual(
    weaker.weakened.map(({ container, newlyFailing }) => [container, newlyFailing]),
    [['web', ['privileged', 'privilegeEscalation']]],
  )
  assert.equal(weaker.isSeccompWeakened, true)
  assert.deepEqual(
    weaker.podSecurity.containers[0]!.fields.map(({ field }) => field),
    ['securityContext.allowPrivilegeEscalation', 'securityContext.privileged'],
  )
  const stronger = confinementDiff({ from: loose, to: strict, oldestRevision: 1 }).value!
  assert.deepEqual([stronger.weakened, stronger.isSeccompWeakened], [[], false])
  const unknownFor = (oldestRevision: number | null) =>
    confinementDiff({ from: null, to: oldestRevision === null ? null : loose, oldestRevision }).gaps[0]!.reason
  assert.deepEqual([null, 1, 2].map(unknownFor), ['no_versions', 'not_recorded_then', 'before_retention'])
})

test('order: a total one, in which any more telling signal wins', () => {
  assert.deepEqual(
    SIGNALS.map((one) => maskOf([one])),
    [64, 32, 16, 8, 4, 2, 1],
  )
  assert.ok(maskOf([SIGNALS[0]]) > maskOf(SIGNALS.slice(1)))
  const fields = {
    ...{ mask: fc.integer({ min: 0, max: 3 }), changes: fc.integer({ min: 0, max: 2 }) },
    ...{ kind: fc.constantFrom('A', 'é'), name: fc.constantFrom('x', '\uffee', '\u{1f600}') },
  }
  const weight = fc.record(fields, { noNullPrototype: true })
  fc.assert(
    fc.property(weight, weight, weight, (a, b, c) => {
      assert.equal(Math.sign(compareWeights(a, b)) + Math.sign(compareWeights(b, a)), 0)
      if (compareWeights(a, b) < 0 && compareWeights(b, c) < 0) assert.ok(compareWeights(a, c) < 0)
      if (compareWeights(a, b) === 0) assert.deepEqual(a, b)
    }),
    RUNS,
  )
})
