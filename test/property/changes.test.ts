/**
 * Diffs of random stores against a model that reads everything stored, written from docs/contract.md#changes; and the
 * tiers of what came against those of the profile.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { readCveChanges } from '../../lib/changes/read/cves.ts'
import { TIER_POSITIONS } from '../../lib/supply-chain/in-use.ts'
import {
  countFlows,
  type Edge,
  type File,
  hoursAgo,
  type Instance,
  storeContainers,
  storeEdges,
  storeFiles,
  storeInstances,
  storePods,
  storeSyscalls,
} from '../changes/rows.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { newDigest, newNamespace } from '../support/images.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'

const app = await startApp()
await countFlows(app.sql)
// Edges are recorded in the cluster since twelve days.
await storeEdges(app.sql, [{ namespace: 'first', ip: '10.0.0.1', first: hoursAgo(12 * 24), last: hoursAgo(1) }])
const EDGES_SINCE = 12 * 24
const RUNS = { numRuns: depth(12, 600) }
const WINDOW_HOURS = app.deps.config.imageRunningWindowSecs / 3_600

/** Hours before now; odd, so that none is a limit of the ranges, which are even. */
const age = fc.integer({ min: 0, max: 9 }).map((days) => days * 24 + 1)
const span = fc.tuple(age, age).map(([a, b]) => ({ first: Math.max(a, b), last: Math.min(a, b) }))
const range = fc
  .tuple(fc.integer({ min: 1, max: 13 }), fc.integer({ min: 0, max: 12 }))
  .map(([a, b]) => ({ from: Math.max(a, b + 1) * 24, to: Math.min(a - 1, b) * 24 }))
const place = { container: fc.constantFrom('app', 'side'), image: fc.integer({ min: 0, max: 2 }) }

const scene = fc.record({
  range,
  containers: fc.uniqueArray(fc.record({ ...place, span }), {
    maxLength: 5,
    selector: ({ container, image }) => `${container} ${image}`,
  }),
  instances: fc.array(
    fc.record({
      ...place,
      span,
      startMode: fc.constantFrom('start' as const, 'start' as const, 'backfill' as const),
      exec: fc.constantFrom(true, true, true, false),
      lib: fc.constantFrom(true, true, true, false),
      dropped: fc.constantFrom(0, 0, 0, 1),
      isEnded: fc.boolean(),
    }),
    { maxLength: 4 },
  ),
  files: fc.uniqueArray(
    fc.record({
      ...place,
      span,
      entryKind: fc.constantFrom('exec' as const, 'lib' as const),
      path: fc.constantFrom('/a', '/b', '/c'),
      origin: fc.constantFrom('image', 'memfd', 'writableLayer'),
    }),
    { maxLength: 8, selector: ({ container, image, entryKind, path }) => [container, image, entryKind, path].join() },
  ),
  pods: fc.record({ live: fc.boolean(), blind: fc.constantFrom(false, false, false, true) }),
  edges: fc.array(
    fc.record({
      span,
      type: fc.constantFrom('INGRESS' as const, 'EGRESS' as const),
      port: fc.constantFrom('1', '2'),
      peer: fc.constantFrom('8.8.8.8', '10.0.0.9', 'db', 'other'),
      decision: fc.constantFrom('ALLOW', 'ALLOW', 'DROP'),
      reporters: fc.subarray(['live', 'dead', 'swept', 'deleted']),
      isOfPod: fc.boolean(),
    }),
    { maxLength: 6 },
  ),
  syscalls: fc.array(fc.option(age, { freq: 3 }), { maxLength: 4 }),
})
type Scene = typeof scene extends fc.Arbitrary<infer S> ? S : never

const later = (a: number, b: number) => a < b
/** Whether a time that many hours ago lies in the range. */
const isIn = ({ from, to }: Scene['range'], hours: number) => later(hours, from) && !later(hours, to)

/** The images of a time, that many hours ago; null where nothing was recorded. */
function imagesAt({ containers }: Scene, hours: number) {
  const begun = containers.filter(({ span }) => span.first > hours)
  if (begun.length === 0) return null
  const until = (one: (typeof begun)[number]) => Math.max(0, one.span.last - WINDOW_HOURS)
  const seenAt = Math.max(hours, Math.min(...begun.map(until)))
  return begun.filter((one) => one.span.first > seenAt && until(one) <= seenAt)
}

/** Why the new files of a container are unknown; null if they are known, undefined if nothing is asked. */
function filesReason({ instances, containers, pods, range: { from } }: Scene, container: string) {
  const own = instances.filter((one) => one.container === container)
  const isInInventory = containers.some((one) => one.container === container && one.span.last < from)
  const isBlind = pods.blind && container === 'app'
  if (own.length === 0) return isInInventory || isBlind ? 'no_runtime_data' : undefined
  if (!own.some(({ span }) => span.first > from)) return 'not_recorded_then'
  const lived = own.filter(({ span }) => span.last < from)
  if (lived.some(({ exec }) => !exec)) return 'probes_missing'
  if (lived.some(({ lib }) => !lib)) return 'libraries_not_tracked'
  if (lived.some(({ dropped }) => dropped > 0)) return 'events_dropped'
  if (lived.some(({ span, startMode }) => span.first < from && startMode === 'backfill')) return 'capture_gap'
  return isBlind ? 'capture_gap' : null
}

const edgeText = (one: { direction: string; port: string; verdict: string; peer: string }) => JSON.stringify(one)

/** The edges of everything stored, by their own key. */
function edgesOf({ edges }: Scene) {
  const all = new Map<string, { first: number; last: number; mayLive: boolean }>()
  for (const { span, type, port, peer, decision, reporters } of edges) {
    const key = edgeText({ direction: type.toLowerCase(), port, verdict: decision, peer })
    const known = all.get(key) ?? { first: 0, last: Number.POSITIVE_INFINITY, mayLive: false }
    all.set(key, {
      first: Math.max(known.first, span.first),
      last: Math.min(known.last, span.last),
      mayLive: known.mayLive || reporters.includes('live') || reporters.includes('swept'),
    })
  }
  return all
}

async function store(namespace: string, digests: readonly string[], given: Scene): Promise<void> {
  const at = (hours: number) => hoursAgo(hours)
  await storeContainers(
    app.sql,
    given.containers.map(({ container, image, span }) => ({
      ...{ namespace, container, digest: digests[image]!, first: at(span.first), last: at(span.last) },
    })),
  )
  await storeInstances(
    app.sql,
    given.instances.map(
      ({ container, image, span, isEnded, ...rest }): Partial<Instance> => ({
        ...{ namespace, container, digest: digests[image]!, covered: at(span.first), last: at(span.last), ...rest },
        ended: isEnded,
      }),
    ),
  )
  await storeFiles(
    app.sql,
    given.files.map(
      ({ container, image, span, ...rest }): Partial<File> => ({
        ...{ namespace, container, digest: digests[image]!, first: at(span.first), last: at(span.last), ...rest },
      }),
    ),
  )
  const name = (pod: string) => `${namespace}-${pod}`
  await storePods(app.sql, [
    { name: name('live'), namespace, containers: given.pods.blind ? ['app'] : [] },
    { name: name('dead'), namespace, isDead: true },
    { name: name('swept'), namespace, isDead: true, isSwept: true },
  ])
  await storeEdges(
    app.sql,
    given.edges.map(({ span, peer, isOfPod, reporters, ...rest }): Partial<Edge> => {
      const isAddress = peer.includes('.')
      return {
        ...{ namespace, first: at(span.first), last: at(span.last), ...rest, reporters: reporters.map(name) },
        ...(isOfPod ? { kind: null, workload: null, pod: name('live') } : {}),
        ...(isAddress
          ? { ip: peer, isPublic: peer === '8.8.8.8' }
          : { peerKind: 'pod', peerNamespace: peer, peerWorkloadKind: 'Deployment', peerWorkload: peer }),
      }
    }),
  )
  if (given.syscalls.length > 0)
    await storeSyscalls(app.sql, {
      namespace,
      names: given.syscalls.map((_, i) => `call_${i}`),
      firstSeen: given.syscalls.map((hours) => (hours === null ? null : at(hours))),
      updated: at(Math.min(9 * 24 + 1, ...given.syscalls.flatMap((hours) => hours ?? []))),
    })
}

const sorted = (list: readonly string[]) => [...list].sort()
type Gap = { part: string; reason: string; container: string | null }
// biome-ignore lint/suspicious/noExplicitAny: an answer is what the test says it is.
type Answer = any

test('the diff of a workload is what a model finds in everything stored, and GET /changes counts the same', async () => {
  const digests = [newDigest(), newDigest(), newDigest()]
  await fc.assert(
    fc.asyncProperty(scene, async (given) => {
      const namespace = newNamespace()
      await store(namespace, digests, given)
      const { from, to } = given.range
      const path = `/workloads/${namespace}/Deployment/web/diff?from=${from}h&to=${to}h`
      const { status, json: diff } = await app.get(path)
      assert.equal(status, 200)
      const reasons = (part: string) =>
        diff.notKnown.filter((one: Gap) => one.part === part).map((one: Gap) => one.reason)

      const [old, now] = [imagesAt(given, from), imagesAt(given, to)]
      const pairs = (rows: Scene['containers']) =>
        sorted(rows.map(({ container, image }) => `${container} ${digests[image]}`))
      if (old === null || now === null) {
        assert.equal(diff.images, null)
        assert.deepEqual(reasons('images'), [given.containers.length === 0 ? 'no_inventory' : 'not_recorded_then'])
      } else {
        const side = (which: 'from' | 'to') =>
          sorted(
            diff.images.containers.flatMap((one: Answer) =>
              one[which].map((digest: string) => `${one.container} ${digest}`),
            ),
          )
        assert.deepEqual([side('from'), side('to')], [pairs(old), pairs(now)])
        const rolledOut = given.containers.filter(({ span }) => isIn(given.range, span.first))
        assert.deepEqual(
          sorted(diff.images.rollouts.items.map((one: Answer) => `${one.container} ${one.digest}`)),
          pairs(rolledOut),
        )
      }

      const model = edgesOf(given)
      const isRecorded =
        given.containers.some(({ span }) => span.first > from) || [...model.values()].some(({ first }) => first > from)
      if (from > EDGES_SINCE || !isRecorded)
        assert.deepEqual([diff.edges, reasons('edges')], [null, ['not_recorded_then']])
      else {
        const textOf = ({ direction, port, verdict, peer }: Answer) =>
          edgeText({ direction, port, verdict, peer: peer.ip ?? peer.workloadName })
        const keys = (isWanted: (one: { first: number; last: number; mayLive: boolean }) => boolean) =>
          sorted([...model].filter(([, one]) => isWanted(one)).map(([key]) => key))
        assert.deepEqual(
          sorted(diff.edges.firstSeen.items.map(textOf)),
          keys(({ first }) => isIn(given.range, first)),
        )
        assert.deepEqual(
          sorted(diff.edges.goneQuiet.items.map(textOf)),
          keys(({ last, mayLive }) => last > from && !mayLive),
        )
        assert.equal(diff.edges.maybeQuiet, keys(({ last, mayLive }) => last > from && mayLive).length)
      }

      const judged = ['app', 'side'].flatMap((container) => {
        const reason = filesReason(given, container)
        return reason === undefined ? [] : [{ container, reason }]
      })
      const isKnown = (container: string) => judged.some((one) => one.container === container && one.reason === null)
      assert.deepEqual(
        diff.notKnown
          .filter(({ part }: Gap) => part === 'files')
          .map(({ container, reason }: Gap) => ({ container, reason })),
        judged.length === 0
          ? [{ container: null, reason: 'no_runtime_data' }]
          : judged.filter(({ reason }) => reason !== null),
      )
      const firstRun = new Map<string, number>()
      for (const { container, entryKind, path, span } of given.files) {
        const key = [container, entryKind, path].join()
        firstRun.set(key, Math.max(firstRun.get(key) ?? 0, span.first))
      }
      const isNew = ([key, first]: [string, number]) => isKnown(key.split(',')[0]!) && isIn(given.range, first)
      const expected = sorted([...firstRun].filter(isNew).map(([key]) => key))
      const shown = diff.files?.firstRun.items.map((one: Answer) => [one.container, one.kind, one.path].join()) ?? []
      assert.deepEqual(sorted(shown), expected)
      assert.equal(diff.files === null, !judged.some(({ reason }) => reason === null))

      const ages = given.syscalls
      const newest = Math.min(9 * 24 + 1, ...ages.flatMap((hours) => hours ?? []))
      const hasBegun = newest > from || ages.some((hours) => hours !== null && hours > from)
      const calls = ages.flatMap((hours, i) => (hours !== null && isIn(given.range, hours) ? [`call_${i}`] : []))
      assert.deepEqual(
        diff.syscalls && sorted(diff.syscalls.firstSeen.items.map((one: Answer) => one.name)),
        ages.length > 0 && hasBegun ? calls : null,
      )

      if (to !== 0 || given.containers.length === 0) return
      const { json: page } = await app.get(`/changes?namespace=${namespace}&since=${from}h`)
      const [item] = page.items
      assert.deepEqual(
        [item.counts.newEdges, item.counts.newSyscalls, item.counts.unshippedFiles === null],
        [diff.edges?.firstSeen.total ?? null, diff.syscalls?.firstSeen.total ?? null, diff.files === null],
      )
      const unshipped = diff.files?.firstRun.items.filter((one: Answer) => one.origin !== 'image') ?? []
      assert.equal(item.counts.unshippedFiles ?? 0, unshipped.length)
      assert.deepEqual(item.facts.files, unshipped.slice(0, 5))
      assert.deepEqual(
        item.notKnown.filter(({ part }: Gap) => part === 'files'),
        diff.notKnown.filter(({ part }: Gap) => part === 'files'),
      )
    }),
    RUNS,
  )
})

const packages = fc.array(
  fc.record({
    name: fc.constantFrom('a', 'b', 'c'),
    version: fc.constantFrom('1', '2', '3'),
    arch: fc.constantFrom('x', 'y'),
  }),
  { maxLength: 6 },
)
const reported = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom('CVE-2024-1', 'CVE-2024-2'),
    package_name: fc.constantFrom('a', 'b'),
    installed_version: fc.constantFrom('1', '2'),
    severity: fc.integer({ min: 0, max: 2 }),
    fixed_versions: fc.subarray(['3', '4']),
  }),
  { maxLength: 5, selector: (one) => [one.id, one.package_name, one.installed_version].join() },
)
const ofSources = <T>(one: fc.Arbitrary<T>) =>
  fc.record({ 'operator-scanner': fc.option(one, { freq: 4 }), 'db-matcher': fc.option(one, { freq: 2 }) })
const image = fc.record({ sboms: ofSources(packages), reports: ofSources(reported) })
const SOURCES = ['operator-scanner', 'db-matcher'] as const

test('the diff of two images applied to the SBOM and the findings of the older gives those of the newer', async () => {
  await fc.assert(
    fc.asyncProperty(image, image, async (older, newer) => {
      const digests = [newDigest(), newDigest()] as const
      for (const [i, { sboms, reports }] of [older, newer].entries())
        for (const source of SOURCES) {
          const [list, found] = [sboms[source], reports[source]]
          if (list !== null)
            await storeSbom(
              app,
              digests[i]!,
              source,
              list.map(({ name, version, arch }) =>
                component(name, { version, purl: `pkg:deb/${name}@${version}?arch=${arch}` }),
              ),
            )
          if (found !== null)
            await storeFindings(
              app,
              digests[i]!,
              source,
              found.map(({ id, ...fields }) => finding(id, fields)),
            )
        }
      const { json: diff } = await app.get(`/images/${digests[0]}/diff/${digests[1]}`)
      const gaps = (part: string) =>
        sorted(diff.notKnown.filter((one: Gap) => one.part === part).map((one: Gap) => one.reason))
      const missing = (kind: 'sboms' | 'reports') =>
        [older, newer].filter((one) => SOURCES.every((source) => one[kind][source] === null)).length
      const common = (kind: 'sboms' | 'reports') =>
        SOURCES.filter((source) => older[kind][source] !== null && newer[kind][source] !== null)

      const [source] = common('sboms')
      if (source === undefined) {
        const count = missing('sboms')
        assert.deepEqual(gaps('components'), count > 0 ? Array(count).fill('no_sbom') : ['no_common_source'])
      } else {
        const bag = older.sboms[source]!.map(({ name, version }) => `${name} ${version}`)
        const take = (one: string, count: number) => {
          for (let i = 0; i < count; i++) assert.notEqual(bag.splice(bag.indexOf(one), 1).length, 0)
        }
        const { added, removed, changed } = diff.components
        for (const one of removed.items) take(`${one.name} ${one.version}`, one.count)
        for (const one of changed.items) take(`${one.name} ${one.from}`, one.count)
        for (const one of changed.items) bag.push(...Array(one.count).fill(`${one.name} ${one.to}`))
        for (const one of added.items) bag.push(...Array(one.count).fill(`${one.name} ${one.version}`))
        assert.deepEqual(sorted(bag), sorted(newer.sboms[source]!.map(({ name, version }) => `${name} ${version}`)))
      }

      if (common('reports').length === 0) {
        const count = missing('reports')
        assert.deepEqual(gaps('findings'), count > 0 ? Array(count).fill('no_report') : ['no_common_source'])
        return
      }
      const merged = ({ reports }: typeof older) => {
        const all = new Map<string, { severity: number; installed: Set<string>; fixed: Set<string> }>()
        for (const one of common('reports').flatMap((source) => reports[source]!)) {
          const key = `${one.id} ${one.package_name}`
          const known = all.get(key) ?? { severity: 9, installed: new Set(), fixed: new Set() }
          known.severity = Math.min(known.severity, one.severity)
          known.installed.add(one.installed_version)
          for (const version of one.fixed_versions) known.fixed.add(version)
          all.set(key, known)
        }
        const names = ['CRITICAL', 'HIGH', 'MEDIUM']
        const shown = [...all].map(([key, one]) => {
          const [installedVersions, fixedVersions] = [sorted([...one.installed]), sorted([...one.fixed])]
          return [key, { severity: names[one.severity], installedVersions, fixedVersions }] as const
        })
        return new Map<string, unknown>(shown)
      }
      const applied = merged(older)
      const keyOf = (one: Answer) => `${one.id} ${one.package}`
      for (const one of diff.findings.went.items) assert.ok(applied.delete(keyOf(one)))
      for (const one of diff.findings.came.items) assert.ok(!applied.has(keyOf(one)) && applied.set(keyOf(one), one.to))
      for (const one of diff.findings.changed.items) {
        assert.deepEqual(applied.get(keyOf(one)), one.from)
        assert.notDeepEqual(one.from, one.to)
        applied.set(keyOf(one), one.to)
      }
      assert.deepEqual(new Map([...applied].sort()), new Map([...merged(newer)].sort()))
    }),
    RUNS,
  )
})

test('the tiers of what came with an image are those of the profile of its workload', async () => {
  const namespace = newNamespace()
  const name = (n: number) => `w-${n}`
  const digests = Array.from({ length: 6 }, newDigest)
  const random = (n: number, of: number) => (n * 7 + (n >> 1) * 3) % of
  const workloads = Array.from({ length: 8 }, (_, n) => ({
    kind: 'Deployment',
    name: name(n),
    containers: [
      { container: 'app', from: [], to: [digests[random(n, 6)]!] },
      { container: 'side', from: [], to: [digests[random(n + 3, 6)]!] },
    ],
  }))
  for (const [n, digest] of digests.entries())
    await storeFindings(
      app,
      digest,
      'operator-scanner',
      Array.from({ length: 12 }, (_, i) =>
        finding(`CVE-2024-${random(n * 5 + i, 30)}`, {
          ...{
            package_name: `p-${i % 4}`,
            class: i % 4 === 1 ? 'lang-pkgs' : 'os-pkgs',
            severity: random(n + i, 5),
            kev: i % 6 === 0 ? true : null,
          },
          ...{ fixed_versions: i % 2 ? ['2'] : [], file_paths: [`/lib/p-${i % 4}.so`] },
        }),
      ).filter((one, i, all) => all.findIndex((other) => other.vuln_id === one.vuln_id) === i),
    )
  const parts = workloads.flatMap(({ name, containers }, n) =>
    containers.map(({ container, to: [digest] }, i) => ({ n, i, workload: name, container, digest: digest! })),
  )
  await storeContainers(
    app.sql,
    parts.map(({ workload, container, digest }) => ({
      ...{ namespace, workload, container, digest, first: hoursAgo(200), last: hoursAgo(0) },
    })),
  )
  await storeInstances(
    app.sql,
    parts
      .filter(({ n }) => n % 3 > 0)
      .map(({ workload, container, digest }) => ({ namespace, workload, container, digest, covered: hoursAgo(200) })),
  )
  await storeFiles(
    app.sql,
    parts
      .filter(({ n }) => n % 2 > 0)
      .map(({ n, workload, container, digest }) => ({
        ...{ namespace, workload, container, digest, entryKind: n % 4 === 1 ? 'lib' : 'exec', first: hoursAgo(100) },
        path: `/lib/p-${n % 4}.so`,
      })),
  )
  await storeEdges(
    app.sql,
    workloads.slice(0, 5).map(({ name }, n) => ({
      ...{ namespace, workload: name, type: 'INGRESS', first: hoursAgo(9), last: hoursAgo(9) },
      ...(n % 2 ? { peerKind: 'node', ip: '10.0.0.3' } : { ip: '10.0.0.4' }),
    })),
  )
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
  const found = await readCveChanges(app.db.read, namespace, workloads)
  const seen = new Set<string>()
  for (const [n, { name, containers }] of workloads.entries()) {
    const groups = await app.sql<{ tier: number; count: string; in_use: string }[]>`
      select v.tier, v.count, v.in_use
      from vulnerabilities_of_workload(
        ${namespace}, 'Deployment', ${name}, array[${containers[0]!.container}, ${containers[1]!.container}],
        array[${containers[0]!.to[0]!}, ${containers[1]!.to[0]!}],
        array[is_use_current(${containers[0]!.to[0]!}), is_use_current(${containers[1]!.to[0]!})]) v`
    const sum = (of: (group: (typeof groups)[number]) => number) => groups.reduce((all, one) => all + of(one), 0)
    const tiers = ['P0', 'P1', 'P2', 'Background'] as const
    const counts = tiers.map((tier) => [
      tier,
      sum((one) => (TIER_POSITIONS[one.tier] === tier ? Number(one.count) : 0)),
    ])
    assert.deepEqual(found[n]!.value!.came, Object.fromEntries(counts))
    const isUrgent = ({ tier }: { tier: number }) => ['P0', 'P1'].includes(TIER_POSITIONS[tier]!)
    assert.equal(
      found[n]!.value!.urgentInUse,
      sum((one) => (isUrgent(one) ? Number(one.in_use) : 0)),
    )
    for (const [tier, count] of counts) if (Number(count) > 0) seen.add(String(tier))
  }
  assert.deepEqual(sorted([...seen]), ['Background', 'P0', 'P1', 'P2'])
})
