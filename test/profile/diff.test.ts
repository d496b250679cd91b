import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LEVELS } from '../../lib/profile/record/pod-security.ts'
import type { Snapshot, SnapshotRule } from '../../lib/profile/snapshot.ts'
import { diffOf, flattened } from '../../lib/profile/versions/diff.ts'
import { canonicalJson, hashSnapshot } from '../../lib/profile/versions/hash.ts'
import type { DiffDimensions, FieldChange } from '../../lib/profile/versions/record.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { contained, OPEN_CONTEXT, POD, snapshotOf, toDatabase } from '../support/profile-versions.ts'

const RUNS = depth(500, 10_000)

/** As a version is read from the database. */
const stored = (snapshot: Snapshot) => {
  const { snapshotText, dimensionHashes } = hashSnapshot(snapshot)
  return { snapshot: JSON.parse(snapshotText) as Snapshot, dimensionHashes }
}
const diff = (from: Snapshot | null, to: Snapshot) => diffOf(from && stored(from), stored(to))

const NOTHING: DiffDimensions = {
  images: { changed: false, containers: [], containersAdded: [], containersRemoved: [] },
  network: { added: [], changed: false, removed: [] },
  podSecurity: { changed: false, containers: [], containersAdded: [], containersRemoved: [], level: null, pod: [] },
  syscalls: { added: [], captureLevel: null, changed: false, cr: null, removed: [] },
}

test('two equal snapshots do not differ', () => {
  assert.deepEqual(diff(snapshotOf(), snapshotOf()), NOTHING)
})

test('without an older version everything was added, and fields that are null do not count', () => {
  assert.deepEqual(diff(null, snapshotOf()), {
    images: { changed: true, containers: [], containersAdded: ['setup', 'web'], containersRemoved: [] },
    network: { added: [toDatabase], changed: true, removed: [] },
    podSecurity: {
      changed: true,
      containers: [],
      containersAdded: ['setup', 'web'],
      containersRemoved: [],
      level: { from: null, to: 'baseline' },
      pod: [
        { field: 'hostNetwork', from: null, to: false },
        { field: 'known', from: null, to: true },
        { field: 'securityContext.fsGroup', from: null, to: 500 },
        { field: 'securityContext.runAsNonRoot', from: null, to: true },
        { field: 'securityContext.seccompProfileType', from: null, to: 'RuntimeDefault' },
        { field: 'serviceAccountName', from: null, to: 'books' },
      ],
    },
    syscalls: {
      added: ['openat', 'read'],
      captureLevel: { from: null, to: 'high' },
      changed: true,
      cr: null,
      removed: [],
    },
  })
})

test('fields of containers on both sides have dotted paths, and lists are whole', () => {
  const now = snapshotOf({
    podSecurity: {
      level: 'restricted',
      pod: { ...POD, securityContext: { ...POD.securityContext, fsGroup: null } },
      containers: {
        web: contained({ capabilitiesDrop: ['ALL'], privileged: false }),
        added: contained({ privileged: true }),
      },
    },
  })
  const { podSecurity } = diff(snapshotOf(), now)
  assert.deepEqual(podSecurity, {
    changed: true,
    containers: [
      {
        name: 'web',
        fields: [
          { field: 'securityContext.capabilitiesDrop', from: null, to: ['ALL'] },
          { field: 'securityContext.privileged', from: null, to: false },
        ],
      },
    ],
    containersAdded: ['added'],
    containersRemoved: ['setup'],
    level: { from: 'baseline', to: 'restricted' },
    pod: [{ field: 'securityContext.fsGroup', from: 500, to: null }],
  })
})

test('a container that became another kind differs in this field', () => {
  const now = snapshotOf()
  const containers = { ...now.podSecurity.containers, setup: contained() }
  const { podSecurity } = diff(now, { ...now, podSecurity: { ...now.podSecurity, containers } })
  assert.deepEqual(podSecurity.containers, [
    { name: 'setup', fields: [{ field: 'kind', from: 'init', to: 'regular' }] },
  ])
})

test('images: digests of containers on both sides, and names of the others', () => {
  const [a, b, c] = ['a', 'b', 'c'].map(digestOf) as [string, string, string]
  const of = (containers: Record<string, string[]>) => snapshotOf({ images: { containers } })
  const { images } = diff(of({ web: [a, b], gone: [a], same: [c] }), of({ same: [c], web: [b, c], new: [] }))
  assert.deepEqual(images, {
    changed: true,
    containers: [{ name: 'web', added: [c], removed: [a] }],
    containersAdded: ['new'],
    containersRemoved: ['gone'],
  })
})

test('syscalls that became unknown are removed; a profile is compared as a whole', () => {
  const cr = { name: 'books', defaultAction: 'SCMP_ACT_LOG', hash: 'h1' }
  const of = (syscalls: Snapshot['syscalls']) => snapshotOf({ syscalls })
  const known = of({ syscalls: ['read', 'write'], captureLevel: 'high', cr })
  assert.deepEqual(diff(known, of({ syscalls: null, captureLevel: null, cr: null })).syscalls, {
    added: [],
    captureLevel: { from: 'high', to: null },
    changed: true,
    cr: { from: cr, to: null },
    removed: ['read', 'write'],
  })
  const renewed = { ...cr, hash: 'h2' }
  assert.deepEqual(diff(known, of({ syscalls: ['read', 'write'], captureLevel: 'high', cr: renewed })).syscalls, {
    ...{ added: [], captureLevel: null, changed: true, removed: [] },
    cr: { from: cr, to: renewed },
  })
})

test('a dimension has changed although nothing is listed: no syscalls, instead of unknown ones', () => {
  const of = (syscalls: string[] | null) => snapshotOf({ syscalls: { syscalls, captureLevel: null, cr: null } })
  assert.deepEqual(diff(of(null), of([])).syscalls, { ...NOTHING.syscalls, changed: true })
})

test('network: a rule that differs in anything is another rule', () => {
  const rules = [
    toDatabase,
    ...[{ direction: 'ingress' as const }, { peer: 'node' }, { port: null }, { protocol: 'UDP' }].map((one) => ({
      ...toDatabase,
      ...one,
    })),
  ]
  const { network } = diff(snapshotOf(), snapshotOf({ network: { rules } }))
  assert.deepEqual(network, { added: rules.slice(1), changed: true, removed: [] })
  assert.deepEqual(diff(snapshotOf({ network: { rules } }), snapshotOf()).network.removed, rules.slice(1))
})

const NAMES = ['web', '__proto__', 'constructor', 'toString', '', '1', '0', 'a.b', 'É', '\u{1f600}', '"', '\n']
const name = fc.constantFrom(...NAMES)
/** An own property, whatever its name. */
const objectOf = <T>(members: readonly (readonly [string, T])[]): Record<string, T> => {
  const made: Record<string, T> = {}
  for (const [key, value] of members)
    Object.defineProperty(made, key, { value, enumerable: true, configurable: true, writable: true })
  return made
}
const named = <T>(value: fc.Arbitrary<T>) =>
  fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 4 }).map(objectOf)
const flag = fc.constantFrom(null, true, false)
const context = fc.record({
  privileged: flag,
  runAsUser: fc.constantFrom(null, 0, 1000),
  capabilitiesAdd: fc.constantFrom(null, [], ['CHOWN'], ['CHOWN', 'KILL']),
})
const rule: fc.Arbitrary<SnapshotRule> = fc.record({
  direction: fc.constantFrom('ingress', 'egress'),
  peer: name,
  port: fc.constantFrom(null, 0, 443),
  protocol: fc.constantFrom('TCP', 'UDP'),
})
const texts = fc.subarray(['accept', 'read', 'write', '__proto__'])
const drawn = fc
  .record({
    podSecurity: fc.record({
      level: fc.constantFrom(null, ...LEVELS),
      pod: fc.option(
        fc
          .record({ hostNetwork: flag, securityContext: fc.record({ fsGroup: fc.constantFrom(null, 1) }) })
          .map((one) => ({
            ...POD,
            ...{ hostNetwork: one.hostNetwork },
            securityContext: { ...POD.securityContext, ...one.securityContext },
          })),
      ),
      containers: named(
        fc.record({
          kind: fc.constantFrom('init', 'regular', 'ephemeral'),
          securityContext: context.map((one) => ({ ...OPEN_CONTEXT, ...one })),
        }),
      ),
    }),
    images: fc.record({ containers: named(fc.subarray(['a', 'b', 'c'].map(digestOf))) }),
    syscalls: fc.record({
      syscalls: fc.option(texts),
      captureLevel: fc.constantFrom(null, 'low', 'high'),
      cr: fc.option(fc.record({ name, defaultAction: name, hash: name })),
    }),
    network: fc.record({ rules: fc.uniqueArray(rule, { selector: canonicalJson, maxLength: 6 }) }),
  })
  // Without the objects that have no prototype.
  .map((one): Snapshot => JSON.parse(JSON.stringify(one)))

/** A list without what was removed and with what was added. */
const applied = (
  list: readonly unknown[],
  { added, removed }: { added: readonly unknown[]; removed: readonly unknown[] },
) => {
  const gone = new Set(removed.map(canonicalJson))
  return [...list.filter((one) => !gone.has(canonicalJson(one))), ...added].map(canonicalJson).sort()
}
const sorted = (list: readonly unknown[]) => list.map(canonicalJson).sort()
/** Fields that are set, after changes. */
const set = (value: unknown, fields: readonly FieldChange[] = []) => {
  const flat = flattened(value)
  for (const { field, from, to } of fields) {
    assert.deepEqual(flat.get(field) ?? null, from)
    flat.set(field, to)
  }
  return new Map([...flat].filter(([, one]) => one !== null).sort(([a], [b]) => (a < b ? -1 : 1)))
}
const valueAfter = <T>(old: T, change: { from: T | null; to: T | null } | null) => {
  if (change === null) return old
  assert.deepEqual(change.from, old)
  return change.to
}
const namesAfter = (old: object, one: { containersAdded: string[]; containersRemoved: string[] }) =>
  [...Object.keys(old).filter((key) => !one.containersRemoved.includes(key)), ...one.containersAdded].sort()
const bothOf = <T>(from: Record<string, T>, to: Record<string, T>) =>
  Object.keys(to).flatMap((key) => (Object.hasOwn(from, key) ? [[key, from[key]!, to[key]!] as const] : []))

test(`of ${RUNS} pairs of snapshots, the older one with the diff applied is the newer one`, () => {
  fc.assert(
    fc.property(drawn, drawn, (from, to) => {
      const made = diff(from, to)
      assert.deepEqual(applied(from.network.rules, made.network), sorted(to.network.rules))
      assert.deepEqual(applied(from.syscalls.syscalls ?? [], made.syscalls), sorted(to.syscalls.syscalls ?? []))
      assert.deepEqual(valueAfter(from.syscalls.captureLevel, made.syscalls.captureLevel), to.syscalls.captureLevel)
      assert.deepEqual(valueAfter(from.syscalls.cr, made.syscalls.cr), to.syscalls.cr)
      assert.deepEqual(valueAfter(from.podSecurity.level, made.podSecurity.level), to.podSecurity.level)
      assert.deepEqual(set(from.podSecurity.pod, made.podSecurity.pod), set(to.podSecurity.pod))

      const [oldImages, newImages] = [from.images.containers, to.images.containers] as Record<string, string[]>[]
      assert.deepEqual(namesAfter(oldImages!, made.images), Object.keys(newImages!).sort())
      for (const [key, old, now] of bothOf(oldImages!, newImages!)) {
        const change = made.images.containers.find((one) => one.name === key) ?? { added: [], removed: [] }
        assert.deepEqual(applied(old, change), sorted(now))
      }
      const [oldPods, newPods] = [from.podSecurity.containers, to.podSecurity.containers]
      assert.deepEqual(namesAfter(oldPods, made.podSecurity), Object.keys(newPods).sort())
      for (const [key, old, now] of bothOf<unknown>(oldPods, newPods))
        assert.deepEqual(set(old, made.podSecurity.containers.find((one) => one.name === key)?.fields), set(now))
    }),
    { numRuns: RUNS },
  )
})

test(`of ${RUNS} pairs of snapshots, a dimension has changed exactly if its contents differ`, () => {
  fc.assert(
    fc.property(
      drawn,
      fc.subarray(['podSecurity', 'images', 'syscalls', 'network'] as const),
      drawn,
      (from, kept, other) => {
        const to = {
          ...other,
          ...Object.fromEntries(kept.map((dimension) => [dimension, from[dimension]])),
        } as Snapshot
        const made = diff(from, to)
        for (const [dimension, { changed }] of Object.entries(made)) {
          const [old, now] = [from, to].map((one) => canonicalJson(one[dimension as keyof Snapshot]))
          assert.equal(changed, old !== now, dimension)
          if (!changed) assert.deepEqual(made[dimension as 'network'], NOTHING[dimension as 'network'])
        }
      },
    ),
    { numRuns: RUNS },
  )
})
