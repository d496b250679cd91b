/** The images that ran in the containers of a workload at a time (docs/contract.md#changes). */
import { compareTexts } from './listed.ts'
import { gap, type Known, known, type Reason, unknown } from './not-known.ts'

/** A container with one of its digests. Times are canonical naive UTC, which sorts as text. */
export interface RanRow {
  readonly container: string
  readonly digest: string
  readonly imageRef: string
  readonly firstSeen: string
  /** Until when it counts as running: the running window after it was last seen, or now. */
  readonly until: string
}

/** The record of a workload in the inventory. */
export interface ImageRecord {
  readonly rows: readonly RanRow[]
  /** Whether there are more rows. */
  readonly isCut: boolean
  /** Rows that ended before may be deleted; null where none is. */
  readonly keptSince: string | null
}

export interface ImagesAt {
  /** The time, or the last one before it at which the workload was seen. */
  readonly seenAt: string
  readonly rows: readonly RanRow[]
}

/**
 * The images at a time, or the last ones before it where the workload was not seen then, as a job that runs once a day
 * is not. An image that was replaced and came back counts as running in between.
 */
export function imagesAt({ rows, isCut, keptSince }: ImageRecord, time: string): ImagesAt | Reason {
  if (rows.length === 0) return 'no_inventory'
  if (isCut) return 'too_many'
  if (keptSince !== null && time < keptSince) return 'before_retention'
  const begun = rows.filter(({ firstSeen }) => firstSeen <= time)
  const seenAt = begun
    .map(({ until }) => (until < time ? until : time))
    .sort(compareTexts)
    .at(-1)
  if (seenAt === undefined) return 'not_recorded_then'
  return { seenAt, rows: begun.filter(({ firstSeen, until }) => firstSeen <= seenAt && seenAt <= until) }
}

export interface ContainerImages {
  readonly container: string
  /** Digests, sorted; empty where the workload did not have the container. */
  readonly from: readonly string[]
  readonly to: readonly string[]
}

export interface Rollout {
  readonly at: string
  readonly container: string
  readonly digest: string
  readonly imageRef: string
}

export interface ImagesDiff {
  readonly fromSeenAt: string
  readonly toSeenAt: string
  readonly containers: readonly ContainerImages[]
  /** Images that were first seen in a container in the range, the oldest first. */
  readonly rollouts: readonly Rollout[]
}

/** Compares the images at both times. `from` is before `to`. */
export function imagesDiff(record: ImageRecord, from: string, to: string): Known<ImagesDiff> {
  const [old, now] = [imagesAt(record, from), imagesAt(record, to)]
  if (typeof old === 'string') return unknown(gap('images', old))
  if (typeof now === 'string') return unknown(gap('images', now))
  const names = [...new Set([...old.rows, ...now.rows].map(({ container }) => container))].sort(compareTexts)
  const digests = ({ rows }: ImagesAt, container: string) =>
    [...new Set(rows.filter((row) => row.container === container).map(({ digest }) => digest))].sort(compareTexts)
  return known({
    fromSeenAt: old.seenAt,
    toSeenAt: now.seenAt,
    containers: names.map((container) => ({
      container,
      from: digests(old, container),
      to: digests(now, container),
    })),
    rollouts: record.rows
      .filter(({ firstSeen }) => from < firstSeen && firstSeen <= to)
      .map(({ firstSeen, container, digest, imageRef }) => ({ at: firstSeen, container, digest, imageRef }))
      .sort(
        (a, b) =>
          compareTexts(a.at, b.at) || compareTexts(a.container, b.container) || compareTexts(a.digest, b.digest),
      ),
  })
}

/** The images of one side only. Those of both sides have changed nothing. */
export function changedImages({ containers }: Pick<ImagesDiff, 'containers'>) {
  const [from, to] = (['from', 'to'] as const).map((side) => new Set(containers.flatMap((one) => one[side])))
  return {
    before: [...from!].filter((digest) => !to!.has(digest)).sort(compareTexts),
    after: [...to!].filter((digest) => !from!.has(digest)).sort(compareTexts),
  }
}

/** Whether the inventory had the workload at the time. */
export const isRecordedAt = (record: ImageRecord, time: string): boolean =>
  record.rows.some(({ firstSeen }) => firstSeen <= time)
