/** Checks of a Linux capability in a container, as agents count and post them (docs/contract.md#capabilities). */
import { z } from 'zod'
import { EntrySchema, field, flag, naiveTime, trimmed, whole } from '../../entries/index.ts'
import { digestOrEmpty } from '../digest-field.ts'

const MAX_WORKLOAD_KIND_BYTES = 63
/** A capability as Kubernetes spells it. */
export const CAPABILITY_PATTERN = '^[A-Z0-9_]{1,32}$'
const CAPABILITY = new RegExp(CAPABILITY_PATTERN)
/** Agents count in 64 bits with a sign. JSON makes the largest such integer, 2^63 - 1, the double 2^63. */
const MAX_POSTED_COUNT = 2 ** 63
/** Counts and sums of them end here: the largest integer that every client reads exactly. */
export const MAX_CHECKS = Number.MAX_SAFE_INTEGER

/** An optional field may be absent or null; one of another type drops the entry. */
export const CapabilityEntry = new EntrySchema(
  z
    .object({
      pod_namespace: trimmed(),
      pod_name: trimmed().nullish(),
      workload_kind: trimmed(MAX_WORKLOAD_KIND_BYTES).describe('`Pod` for a bare pod.'),
      workload_name: trimmed(),
      container_name: trimmed(),
      image_digest: digestOrEmpty.nullish().describe('Empty or absent where it is not resolved.'),
      capability: field({ type: 'string', pattern: CAPABILITY_PATTERN }, (value) =>
        typeof value === 'string' && CAPABILITY.test(value) ? value : undefined,
      ).describe('As Kubernetes spells it, without `CAP_`; `CAP_<n>` for a number that the agent cannot name.'),
      granted: flag,
      probed: flag
        .nullish()
        .describe('Whether the kernel only asked, without refusing anything for it. Without it, false.'),
      count: whole(0, MAX_POSTED_COUNT).describe(
        `Checks since the last post; 0 says only that they are still known. More than ${MAX_CHECKS}, up to 2^63 - 1, ` +
          'counts as that.',
      ),
      first_seen: naiveTime.describe('Where it is later than `last_seen`, that time.'),
      last_seen: naiveTime.describe('Where it is in the future, the time of the broker.'),
    })
    .transform((entry) =>
      // Faster than a copy.
      Object.assign(entry, {
        pod_name: entry.pod_name ?? null,
        image_digest: entry.image_digest ?? '',
        probed: entry.probed ?? false,
        count: Math.min(entry.count, MAX_CHECKS),
        first_seen: earliest(entry.first_seen, entry.last_seen),
      }),
    ),
)

/** Checks to be stored. Times are naive UTC, `first_seen` is not after `last_seen`; an unknown image is empty. */
export type Checks = Readonly<z.output<typeof CapabilityEntry.schema>>

/** Merges two counts of one row. The pod is that of the later entry, if it has one. */
export const merged = (one: Checks, later: Checks): Checks => ({
  ...one,
  pod_name: later.pod_name ?? one.pod_name,
  count: Math.min(one.count + later.count, MAX_CHECKS),
  first_seen: earliest(one.first_seen, later.first_seen),
  last_seen: latest(one.last_seen, later.last_seen),
})

// Canonical times sort as text in the order of time.
const earliest = (a: string, b: string) => (a < b ? a : b)
const latest = (a: string, b: string) => (a > b ? a : b)
