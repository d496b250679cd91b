/** How telling the changes of a workload are (docs/contract.md#changes). */

/** The most telling first. */
export const SIGNALS = [
  'urgentFindingsInUse',
  'untrustedImage',
  'newExposure',
  'unshippedFiles',
  'confinementWeakened',
  'urgentFindings',
  'newImage',
] as const
export type Signal = (typeof SIGNALS)[number]

/** The place of a workload in the list. */
export interface Weight {
  /** A bit for each signal, the highest for the most telling one. */
  readonly mask: number
  /** All changes, counted. */
  readonly changes: number
  readonly kind: string
  readonly name: string
}

export const maskOf = (signals: readonly Signal[]): number =>
  signals.reduce((mask, signal) => mask | (1 << (SIGNALS.length - 1 - SIGNALS.indexOf(signal))), 0)

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Workloads with the more telling signal come first, then those with more changes, then by kind and name. */
export const compareWeights = (a: Weight, b: Weight): number =>
  b.mask - a.mask || b.changes - a.changes || byBytes(a.kind, b.kind) || byBytes(a.name, b.name)
