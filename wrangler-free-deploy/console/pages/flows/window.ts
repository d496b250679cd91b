/** Compares the time window with the period of stored flows. */

const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
/** Tolerance: a small cluster may have no flow for a while. */
const QUIET_MS = 60_000

/**
 * Whether a window begins clearly before the oldest stored flow. `since` is a time or relative, as the API reads it.
 */
export function isOlderThanKept(since: string, keptSinceMs: number, nowMs: number): boolean {
  const [, number, unit = ''] = /^(\d+)([smhdw])$/.exec(since) ?? []
  const zoned = /(Z|[+-]\d\d:\d\d)$/.test(since) ? since : `${since}Z`
  const sinceMs = number === undefined ? Date.parse(zoned) : nowMs - Number(number) * UNITS_MS[unit]!
  return keptSinceMs - sinceMs > QUIET_MS
}
