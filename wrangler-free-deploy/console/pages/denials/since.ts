/** A time with its zone, for routes that do not take relative times. */

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Converts `24h` or a time to RFC 3339 in whole seconds. Null for no value and for any other text. */
export function zonedSince(text: string | null, nowMs: number): string | null {
  if (text === null || text === '') return null
  const distance = /^(\d+)([smhdw])$/.exec(text)
  const ms = distance === null ? Date.parse(text) : nowMs - Number(distance[1]) * UNIT_MS[distance[2]!]!
  return Number.isNaN(ms) ? null : new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
