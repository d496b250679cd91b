/** Drift without a database. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type {
  DriftFacts,
  ExportRecord,
  UnshippedFile,
  UnshippedFiles,
  VersionFacts,
} from '../../lib/profile/drift/facts.ts'
import { judgeDrift, type Rejudge } from '../../lib/profile/drift/index.ts'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { DRIFT_TYPES, Drift } from '../../lib/profile/record/drift.ts'
import type { Check } from '../../lib/profile/record/pod-security.ts'
import type { PodSecuritySnapshot } from '../../lib/profile/snapshot.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { rowOf, staleOf } from './inventory.ts'

const AT = '2026-01-03T00:00:00Z'
const HASHES = { podSecurity: 'fnv1a64:0000000000000001' }
const OTHER = 'fnv1a64:0000000000000002'

/**
 * A snapshot that names the checks that fail. Which ones do is the business of the rules of pod security, which have
 * tests of their own.
 */
interface Failing {
  readonly pod?: readonly Check[]
  readonly unjudged?: readonly Check[]
  readonly containers?: Readonly<Record<string, readonly Check[]>>
}
const snapshotOf = (failing: Failing | null) => ({ failing }) as unknown as PodSecuritySnapshot
const rejudge: Rejudge = (snapshot) => {
  const { failing } = snapshot as unknown as { failing: Failing | null }
  if (failing === null) return { pod: null, containers: new Map() }
  const { pod = [], unjudged = [], containers = {} } = failing
  const part = (checks: readonly Check[]) => ({
    level: checks.includes('privileged') ? ('privileged' as const) : ('restricted' as const),
    ...{ failing: checks, unjudged },
  })
  return { pod: part(pod), containers: new Map(Object.entries(containers).map(([name, own]) => [name, part(own)])) }
}

const facts = (fields: Partial<DriftFacts> = {}): DriftFacts => ({
  ...{ export: null, versions: [], isWatched: false, coverage: [], unshipped: [] },
  ...fields,
})
const exported = (fields: Partial<ExportRecord> = {}): ExportRecord => ({
  ...{ revision: 4, contentHash: OTHER, mode: 'audit', artifacts: ['networkpolicy'], exportedAt: AT },
  ...{ images: { containers: {} }, podSecurity: snapshotOf({}) },
  ...fields,
})
const version = (revision: number, podSecurityHash: string, failing: Failing = {}): VersionFacts => ({
  ...{ revision, createdAt: AT, podSecurityHash, podSecurity: snapshotOf(failing) },
})
const covered = (container: string, image: string, reason: string | null = null) => ({
  ...{ container, digest: digestOf(image), reason },
})
const file = (path: string, fields: Partial<UnshippedFile> = {}): UnshippedFile => ({
  ...{
    path,
    kind: 'exec',
    origin: 'writableLayer',
    digest: digestOf('a'),
    pathComplete: true,
    firstSeen: AT,
    lastSeen: AT,
  },
  ...fields,
})
const files = (container: string, fields: Partial<UnshippedFiles> = {}): UnshippedFiles => {
  const own = fields.files ?? [file('/tmp/x')]
  return { container, files: own, total: own.length, origins: [...new Set(own.map(({ origin }) => origin))], ...fields }
}

/** Judges, and checks the answer against its shape. */
function judge(
  rows: readonly InventoryRow[],
  given: DriftFacts = facts(),
  { failing = {}, isTruncated = false }: { failing?: Failing | null; isTruncated?: boolean } = {},
) {
  const podSecurity = snapshotOf(failing)
  const { dimension, findings } = judgeDrift(given, {
    rows,
    isTruncated,
    podSecurity,
    dimensionHashes: HASHES,
    rejudge,
  })
  assert.deepEqual(Drift.parse(dimension), dimension)
  assert.deepEqual(
    [...new Set(dimension.items.map(({ findingId }) => findingId))],
    findings.map(({ id }) => id),
  )
  const missing = dimension.notEvaluated.map(({ type, container, reason }) => `${type} ${container}: ${reason}`)
  return { ...dimension, findings, missing, types: dimension.items.map(({ type }) => type) }
}
const missingOf = (type: string, ...asked: Parameters<typeof judge>) =>
  judge(...asked).missing.filter((one) => one.startsWith(type))

test('without anything to compare with, each check says why', () => {
  const { evaluated, missing, items, findings, baselines } = judge([])
  assert.deepEqual([evaluated, items, findings], [[], [], []])
  assert.deepEqual(baselines, { export: null, securityContext: null })
  assert.deepEqual(missing, [
    'unshippedExecutable null: no_running_containers',
    'tagMoved null: no_image_inventory',
    'imageChangedSinceExport null: no_export',
    'securityContextRegression null: no_baseline',
  ])
})

test('a workload that no agent watches, as the ecosystem shows it', () => {
  const { evaluated, missing } = judge([rowOf('app', 'a')])
  assert.deepEqual(evaluated, ['tagMoved'])
  assert.deepEqual(missing, [
    'unshippedExecutable app: no_inventory',
    'imageChangedSinceExport null: no_export',
    'securityContextRegression null: no_baseline',
  ])
})

test('every key of all four types, in order', () => {
  const rows = [
    rowOf('app', 'a', { firstSeen: '2026-01-01T00:00:00Z' }),
    rowOf('app', 'b', { isRunning: false, firstSeen: '2026-01-01T00:00:00.5Z' }),
  ]
  const {
    missing: _,
    types: _types,
    findings,
    ...drift
  } = judge(
    rows,
    facts({
      export: exported({
        images: { containers: { app: [digestOf('b')] } },
        podSecurity: snapshotOf({ containers: { app: [] } }),
      }),
      isWatched: true,
      coverage: [covered('app', 'a')],
      unshipped: [files('app')],
    }),
    { failing: { containers: { app: ['privileged', 'runAsNonRoot'] } } },
  )
  const imageRef = 'registry.test/team/app:v1'
  const digests = [digestOf('a'), digestOf('b')].sort()
  assert.equal(
    JSON.stringify(drift),
    JSON.stringify({
      baselines: {
        export: { revision: 4, contentHash: OTHER, mode: 'audit', artifacts: ['networkpolicy'], exportedAt: AT },
        securityContext: { source: 'export', revision: 4, since: AT },
      },
      evaluated: DRIFT_TYPES,
      notEvaluated: [],
      items: [
        {
          ...{ type: 'tagMoved', findingId: 'drift.tagMoved/app', severity: 'medium', container: 'app' },
          detail: { imageRef, digests, since: '2026-01-01T00:00:00.5Z' },
        },
        {
          ...{ type: 'imageChangedSinceExport', findingId: 'drift.imageChangedSinceExport/app' },
          ...{ severity: 'medium', container: 'app' },
          detail: { containerInExport: true, exportedDigests: [digestOf('b')], newDigests: [digestOf('a')] },
        },
        {
          ...{ type: 'securityContextRegression', findingId: 'drift.securityContextRegression/app' },
          ...{ severity: 'high', container: 'app' },
          detail: { newlyFailing: ['privileged', 'runAsNonRoot'], levelFrom: 'restricted', levelTo: 'privileged' },
        },
        {
          ...{ type: 'unshippedExecutable', findingId: 'drift.unshippedExecutable/app' },
          ...{ severity: 'high', container: 'app' },
          detail: { origins: ['writableLayer'], files: [file('/tmp/x')], filesTotal: 1, truncated: false },
        },
      ],
    }),
  )
  assert.deepEqual(
    findings.map(({ id, dimension, severity, tier, container }) => [id, dimension, severity, tier, container]),
    [
      ['drift.tagMoved/app', 'drift', 'medium', 'P2', 'app'],
      ['drift.imageChangedSinceExport/app', 'drift', 'medium', 'P2', 'app'],
      ['drift.securityContextRegression/app', 'drift', 'high', 'P1', 'app'],
      ['drift.unshippedExecutable/app', 'drift', 'high', 'P1', 'app'],
    ],
  )
})

test('tagMoved: one reference without a digest, several images, of a container that is current', () => {
  const moved = (...rows: InventoryRow[]) => judge(rows).types.filter((type) => type === 'tagMoved').length
  const old = { isRunning: false }
  assert.equal(moved(rowOf('app', 'a'), rowOf('app', 'b')), 1, 'both run')
  assert.equal(moved(rowOf('app', 'a'), rowOf('app', 'b', { ...old, isCurrent: false })), 1, 'one ran before')
  assert.equal(moved(rowOf('app', 'a'), rowOf('app', 'b', { imageRef: 'registry.test/team/app:v2' })), 0, 'another tag')
  const pinned = { imageRef: `registry.test/team/app@${digestOf('a')}` }
  assert.equal(moved(rowOf('app', 'a', pinned), rowOf('app', 'b', pinned)), 0, 'a digest cannot move')
  assert.equal(
    moved(rowOf('app', 'a'), rowOf('side', 'b', { imageRef: 'registry.test/team/app:v1' })),
    0,
    'another container',
  )
  assert.equal(moved(staleOf('app', 'a'), staleOf('app', 'b'), rowOf('side', 'a')), 0, 'stale')
  const two = ['v1', 'v2'].flatMap((tag) =>
    ['a', 'b'].map((image) => rowOf('app', `${image}${tag}`, { imageRef: `registry.test/team/app:${tag}` })),
  )
  const { items, findings } = judge(two)
  assert.deepEqual([items.length, findings.length], [2, 1], 'two references, one finding')
  assert.deepEqual(missingOf('tagMoved', [staleOf('app', 'a')]), ['tagMoved null: no_image_inventory'])
})

test('imageChangedSinceExport: new digests of a known container, all of a new one', () => {
  const given = facts({ export: exported({ images: { containers: { app: [digestOf('a')], gone: [digestOf('x')] } } }) })
  const details = (...rows: InventoryRow[]) =>
    judge(rows, given)
      .items.filter(({ type }) => type === 'imageChangedSinceExport')
      .map(({ container, detail }) => [container, detail])
  assert.deepEqual(details(rowOf('app', 'a')), [])
  assert.deepEqual(details(rowOf('app', 'a'), rowOf('app', 'b')), [
    ['app', { containerInExport: true, exportedDigests: [digestOf('a')], newDigests: [digestOf('b')] }],
  ])
  const digests = [digestOf('b'), digestOf('c')].sort()
  assert.deepEqual(details(rowOf('new', 'c'), rowOf('new', 'b')), [
    ['new', { containerInExport: false, exportedDigests: [], newDigests: digests }],
  ])
  const ended = rowOf('init', 'b', { isRunning: false, state: 'terminated' })
  assert.deepEqual(details(ended, staleOf('old', 'b')), [], 'neither runs')
  assert.deepEqual(missingOf('imageChanged', [staleOf('app', 'b')], given), [
    'imageChangedSinceExport null: no_image_inventory',
  ])
  const odd = facts({ export: exported({ images: { containers: {} } }) })
  assert.equal(judge([rowOf('toString', 'a')], odd).items.length, 1, 'a container named as a property of objects')
})

test('securityContextRegression: checks that passed before and fail now, of the pod and of known containers', () => {
  const compare = (before: Failing, failing: Failing) =>
    judge([], facts({ export: exported({ podSecurity: snapshotOf(before) }) }), { failing }).items.map(
      ({ findingId, container, severity, detail }) => [
        findingId,
        container,
        severity,
        'newlyFailing' in detail && detail.newlyFailing,
      ],
    )
  const id = 'drift.securityContextRegression'
  assert.deepEqual(compare({}, { pod: ['hostNamespaces'] }), [[`${id}/pod`, null, 'high', ['hostNamespaces']]])
  assert.deepEqual(
    compare({ containers: { app: ['runAsUser'] } }, { containers: { app: ['runAsUser', 'runAsNonRoot'] } }),
    [[`${id}/app`, 'app', 'medium', ['runAsNonRoot']]],
  )
  assert.deepEqual(compare({ containers: { app: [] } }, { containers: { app: ['sysctls'] } })[0]![2], 'high')
  assert.deepEqual(compare({ containers: { app: [] } }, { containers: { app: ['volumeTypes'] } })[0]![2], 'medium')
  assert.deepEqual(compare({ containers: { app: ['privileged'] } }, { containers: { app: [] } }), [], 'an improvement')
  assert.deepEqual(compare({}, { containers: { app: ['privileged'] } }), [], 'a new container')
  assert.deepEqual(
    compare({ unjudged: ['hostNamespaces'] }, { pod: ['hostNamespaces'] }),
    [],
    'it was not known before',
  )
})

test('securityContextRegression: the baseline is the export, else the newest version that differs', () => {
  const versions = [version(9, OTHER), version(7, HASHES.podSecurity)]
  const both = judge([], facts({ export: exported({ revision: null }), versions }))
  assert.deepEqual(both.baselines.securityContext, { source: 'export', revision: null, since: AT })
  const { baselines } = judge([], facts({ versions }))
  assert.deepEqual(baselines.securityContext, { source: 'previousVersion', revision: 9, since: AT })
  const older = judge([], facts({ versions: [version(9, HASHES.podSecurity), version(7, OTHER)] }))
  assert.deepEqual(older.baselines.securityContext!.revision, 7)
  const same = judge([], facts({ versions: [version(9, HASHES.podSecurity)] }))
  assert.equal(same.baselines.securityContext, null)
  assert.ok(same.missing.includes('securityContextRegression null: no_baseline'))
})

test('securityContextRegression: without containers, then or now, nothing is compared', () => {
  const missing = (before: Failing | null, failing: Failing | null) =>
    missingOf('securityContext', [], facts({ export: exported({ podSecurity: snapshotOf(before) }) }), { failing })
  assert.deepEqual(missing({}, null), ['securityContextRegression null: no_container_data'])
  assert.deepEqual(missing(null, {}), ['securityContextRegression null: no_container_data'])
  assert.deepEqual(missing({}, {}), [])
})

test('unshippedExecutable: what was seen is drift, whatever the coverage; high unless it was only deleted', () => {
  const of = (origins: string[], total = 1) =>
    judge([rowOf('app', 'a')], facts({ unshipped: [files('app', { origins, total })] })).items[0]!
  assert.equal(of(['deleted']).severity, 'medium')
  for (const origin of ['memfd', 'writableLayer']) assert.equal(of([origin, 'deleted']).severity, 'high', origin)
  const { detail } = of(['memfd', 'deleted', 'writableLayer'], 21)
  assert.ok('origins' in detail)
  assert.deepEqual(
    [detail.origins, detail.filesTotal, detail.truncated],
    [['deleted', 'writableLayer', 'memfd'], 21, true],
  )
  const { missing, types } = judge([rowOf('app', 'a')], facts({ unshipped: [files('app')] }))
  assert.deepEqual([types, missing[0]], [['unshippedExecutable'], 'unshippedExecutable app: no_inventory'])
})

test('unshippedExecutable: evaluated only if each running image of each container was watched', () => {
  const rows = [rowOf('app', 'a'), rowOf('app', 'b'), rowOf('side', 'c'), staleOf('old', 'd')]
  const missing = (coverage: DriftFacts['coverage'], isWatched = true) =>
    missingOf('unshipped', rows, facts({ isWatched, coverage }))
  const all = [covered('app', 'a'), covered('app', 'b'), covered('side', 'c')]
  assert.deepEqual(missing(all), [])
  assert.deepEqual(missing(all.slice(1)), ['unshippedExecutable app: no_runtime_data'])
  assert.deepEqual(missing([all[0]!, covered('app', 'b', 'capture_gap'), covered('side', 'c', 'events_dropped')]), [
    'unshippedExecutable app: capture_gap',
    'unshippedExecutable side: events_dropped',
  ])
  assert.deepEqual(missing([], false), [
    'unshippedExecutable app: no_inventory',
    'unshippedExecutable side: no_inventory',
  ])
  const ended = [rowOf('init', 'a', { isRunning: false })]
  assert.deepEqual(missingOf('unshipped', ended, facts({ isWatched: true })), [
    'unshippedExecutable null: no_running_containers',
  ])
})

test('unshippedExecutable: 32 images are checked; a cut inventory is never whole', () => {
  const rows = Array.from({ length: 33 }, (_, n) => rowOf(`c${n}`, String(n)))
  const given = facts({ isWatched: true, coverage: rows.map(({ container }, n) => covered(container, String(n))) })
  assert.deepEqual(missingOf('unshipped', rows.slice(0, 32), given), [])
  assert.deepEqual(missingOf('unshipped', rows, given), ['unshippedExecutable c32: truncated'])
  const { evaluated, missing } = judge(rows.slice(0, 1), given, { isTruncated: true })
  assert.deepEqual(
    [evaluated.includes('unshippedExecutable'), missing[0]],
    [false, 'unshippedExecutable null: truncated'],
  )
})

test('property: each type is evaluated or has a reason, never both, and each unshipped file is an item', () => {
  const names = ['a', 'b', 'c']
  const images = ['1', '2', '3']
  const row = fc
    .record({
      container: fc.constantFrom(...names),
      image: fc.constantFrom(...images),
      isRunning: fc.boolean(),
      isCurrent: fc.boolean(),
    })
    .map(({ container, image, isRunning, isCurrent }) =>
      rowOf(container, image, { isRunning: isRunning && isCurrent, isCurrent }),
    )
  const scene = fc.record({
    rows: fc.uniqueArray(row, { selector: ({ container, digest }) => container + digest, maxLength: 6 }),
    isWatched: fc.boolean(),
    coverage: fc.array(
      fc
        .tuple(fc.constantFrom(...names), fc.constantFrom(...images), fc.constantFrom(null, null, 'capture_gap'))
        .map(([container, image, reason]) => covered(container, image, reason)),
      { maxLength: 6 },
    ),
    seen: fc.subarray(names),
    isExported: fc.boolean(),
    failing: fc.constantFrom<Failing | null>(null, {}, { pod: ['hostNamespaces'] }),
    isTruncated: fc.boolean(),
  })
  fc.assert(
    fc.property(scene, ({ rows, isWatched, coverage, seen, isExported, failing, isTruncated }) => {
      const running = new Set(rows.filter(({ isRunning }) => isRunning).map(({ container }) => container))
      const unshipped = seen.filter((name) => running.has(name)).map((name) => files(name))
      const given = facts({ isWatched, coverage, unshipped, export: isExported ? exported() : null })
      const { evaluated, notEvaluated, items } = judge(rows, given, { failing, isTruncated })
      for (const type of DRIFT_TYPES) {
        const reasons = notEvaluated.filter((one) => one.type === type)
        assert.notEqual(evaluated.includes(type), reasons.length > 0, type)
        const containers = reasons.map(({ container }) => container)
        assert.equal(new Set(containers).size, containers.length)
        if (type !== 'unshippedExecutable') assert.ok(containers.every((one) => one === null))
      }
      assert.deepEqual(
        items
          .filter(({ type }) => type === 'unshippedExecutable')
          .map(({ container }) => container)
          .sort(),
        unshipped.map(({ container }) => container).sort(),
      )
      const isSilent = evaluated.includes('unshippedExecutable')
      const isWhole = rows
        .filter(({ isRunning }) => isRunning)
        .every(({ container, digest }) => {
          const first = coverage.find((one) => one.container === container && one.digest === digest)
          return first !== undefined && first.reason === null
        })
      if (isSilent) assert.ok(isWatched && isWhole && running.size > 0 && !isTruncated)
    }),
    { numRuns: depth(200, 10_000) },
  )
})
