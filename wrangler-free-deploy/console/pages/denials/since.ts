/** A time with its zone, for the routes that take no distance from now. */

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `24h`, or a time, as RFC 3339 in whole seconds; null for none, and for a text that is neither. */
export function zonedSince(text: string | null, nowMs: number): string | null {
  if (text === null || text === '') return null
  const distance = /^(\d+)([smhdw])$/.exec(text)
  const ms = distance === null ? Date.parse(text) : nowMs - Number(distance[1]) * UNIT_MS[distance[2]!]!
  return Number.isNaN(ms) ? null : new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
