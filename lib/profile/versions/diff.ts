/** The difference between two snapshots of a workload (docs/contract.md#workload-profiles). */
import type { Snapshot, SnapshotRule } from '../snapshot.ts'
import { canonicalJson, type DimensionHashes } from './hash.ts'
import type { Change, DiffDimensions, FieldChange } from './record.ts'

/** A stored version. */
export interface VersionContent {
  readonly snapshot: Snapshot
  readonly dimensionHashes: DimensionHashes
}

/**
 * Compares a version with an older one; without one, everything was added. A dimension has changed if its hash has:
 * its lists may still be empty, for instance where syscalls became unknown and none had been seen.
 */
export function diffOf(from: VersionContent | null, to: VersionContent): DiffDimensions {
  const isChanged = (dimension: keyof DimensionHashes) =>
    from?.dimensionHashes[dimension] !== to.dimensionHashes[dimension]
  const [old, now] = [from?.snapshot ?? null, to.snapshot]
  return {
    images: { changed: isChanged('images'), ...imagesDiff(old?.images.containers ?? {}, now.images.containers) },
    network: { changed: isChanged('network'), ...rulesDiff(old?.network.rules ?? [], now.network.rules) },
    podSecurity: { changed: isChanged('podSecurity'), ...podSecurityDiff(old?.podSecurity ?? null, now.podSecurity) },
    syscalls: { changed: isChanged('syscalls'), ...syscallsDiff(old?.syscalls ?? null, now.syscalls) },
  }
}

type Named<T> = Readonly<Record<string, T>>

/** The names on one side only, and the pairs of the others; all in the order of names. */
function compared<T>(from: Named<T>, to: Named<T>) {
  // Maps, since a container may have the name of a property of every object.
  const [old, now] = [new Map(Object.entries(from)), new Map(Object.entries(to))]
  const only = (in_: Map<string, T>, notIn: Map<string, T>) => [...in_.keys()].filter((name) => !notIn.has(name)).sort()
  const both = [...now.keys()].filter((name) => old.has(name)).sort()
  return {
    containersAdded: only(now, old),
    containersRemoved: only(old, now),
    pairs: both.map((name) => ({ name, from: old.get(name)!, to: now.get(name)! })),
  }
}

function imagesDiff(from: Named<readonly string[]>, to: Named<readonly string[]>) {
  const { pairs, ...names } = compared(from, to)
  const containers = pairs
    .map(({ name, from: old, to: now }) => ({ added: without(now, old), name, removed: without(old, now) }))
    .filter(({ added, removed }) => added.length > 0 || removed.length > 0)
  return { containers, ...names }
}

function rulesDiff(from: readonly SnapshotRule[], to: readonly SnapshotRule[]) {
  const [old, now] = [from, to].map((rules) => new Map(rules.map((rule) => [canonicalJson(rule), rule]))) as [
    Map<string, SnapshotRule>,
    Map<string, SnapshotRule>,
  ]
  const only = (rules: Map<string, SnapshotRule>, other: Map<string, SnapshotRule>) =>
    [...rules].filter(([text]) => !other.has(text)).map(([, rule]) => rule)
  return { added: only(now, old), removed: only(old, now) }
}

/** Compares the parts of pod security; without an older one, everything was added. */
export function podSecurityDiff(from: Snapshot['podSecurity'] | null, to: Snapshot['podSecurity']) {
  const { pairs, ...names } = compared<unknown>(from?.containers ?? {}, to.containers)
  const containers = pairs
    .map(({ name, from: old, to: now }) => ({ fields: fieldsDiff(old, now), name }))
    .filter(({ fields }) => fields.length > 0)
  return {
    containers,
    ...names,
    level: change(from?.level ?? null, to.level),
    pod: fieldsDiff(from?.pod ?? null, to.pod),
  }
}

function syscallsDiff(from: Snapshot['syscalls'] | null, to: Snapshot['syscalls']) {
  const [old, now] = [from?.syscalls ?? [], to.syscalls ?? []]
  return {
    added: without(now, old),
    captureLevel: change(from?.captureLevel ?? null, to.captureLevel),
    cr: change(from?.cr ?? null, to.cr),
    removed: without(old, now),
  }
}

/** Null where both are the same. */
export const change = <T>(from: T | null, to: T | null): Change<T> =>
  canonicalJson(from) === canonicalJson(to) ? null : { from, to }

function without(list: readonly string[], other: readonly string[]): string[] {
  const others = new Set(other)
  return list.filter((one) => !others.has(one))
}

/** The fields that differ, by their dotted path; an absent one counts as null. */
function fieldsDiff(from: unknown, to: unknown): FieldChange[] {
  const [old, now] = [flattened(from), flattened(to)]
  return [...new Set([...old.keys(), ...now.keys()])]
    .sort()
    .map((field) => ({ field, from: old.get(field) ?? null, to: now.get(field) ?? null }))
    .filter((one) => change(one.from, one.to) !== null)
}

/** The members of an object and of the objects in it by their dotted path; lists are whole. */
export function flattened(value: unknown, path: readonly string[] = []): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map(path.length > 0 ? [[path.join('.'), value]] : [])
  return new Map(Object.entries(value).flatMap(([key, one]) => [...flattened(one, [...path, key])]))
}
