/** The hashes of a snapshot (docs/contract.md#workload-profiles). Clients only compare them. */
import { CORE_DIMENSIONS, type CoreDimension } from '../record/common.ts'
import type { Snapshot } from '../snapshot.ts'

const WORD = 0x1_0000_0000
const BASIS = [0xcbf2_9ce4, 0x8422_2325] as const
/** The prime is 2^40 + 435. */
const LOW_PRIME = 435
const HIGH_SHIFT = 8

/**
 * FNV-1a, 64 bits, over the UTF-8 bytes of a text, as 16 hexadecimal digits (draft-eastlake-fnv, section 6). It
 * multiplies two halves of 32 bits, whose products are exact; a BigInt for each byte takes fifty times as long.
 */
export function fnv1a64(text: string): string {
  let [high, low] = BASIS as readonly [number, number]
  for (const byte of Buffer.from(text)) {
    const mixed = (low ^ byte) >>> 0
    const product = mixed * LOW_PRIME
    high = (high * LOW_PRIME + Math.floor(product / WORD) + mixed * 2 ** HIGH_SHIFT) % WORD
    low = product % WORD
  }
  return [high, low].map((half) => half.toString(16).padStart(8, '0')).join('')
}

/** Compact JSON with the keys of every object sorted: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, one]) => `${JSON.stringify(key)}:${canonicalJson(one)}`).join()}}`
}

const hashOf = (canonical: string) => `fnv1a64:${fnv1a64(canonical)}`

/** The hash of a part of a snapshot, as in `dimensionHashes`. */
export const hashOfPart = (part: Snapshot[CoreDimension]): string => hashOf(canonicalJson(part))

export type DimensionHashes = Readonly<Record<CoreDimension, string>>

/** A snapshot as it is stored, with its hashes. */
export interface HashedSnapshot {
  /** Canonical JSON. */
  readonly snapshotText: string
  /** Of the whole snapshot: `fnv1a64:` and 16 hexadecimal digits. */
  readonly contentHash: string
  /** Of each of its parts. */
  readonly dimensionHashes: DimensionHashes
}

export function hashSnapshot(snapshot: Snapshot): HashedSnapshot {
  const snapshotText = canonicalJson(snapshot)
  const parts = CORE_DIMENSIONS.map((dimension) => [dimension, hashOfPart(snapshot[dimension])])
  return { snapshotText, contentHash: hashOf(snapshotText), dimensionHashes: Object.fromEntries(parts) }
}
