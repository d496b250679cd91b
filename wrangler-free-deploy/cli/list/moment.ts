import { EXIT, Failure } from '../failure.ts'

const MS_BY_UNIT: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/**
 * A distance from now (`15m`, `7d`) as a time, RFC 3339; any other text as it is, which the broker judges.
 * @throws Failure for a distance that leads before the calendar
 */
export function instantBefore(flag: string, text: string, now = Date.now()): string {
  const [, count, unit] = /^(\d+)([smhdw])$/.exec(text.trim()) ?? []
  if (count === undefined) return text
  const at = new Date(now - Number(count) * MS_BY_UNIT[unit!]!)
  if (Number.isNaN(at.getTime()) || at.getUTCFullYear() < 1970)
    throw new Failure(`${flag}: expected a shorter distance`, EXIT.usage)
  return at.toISOString()
}
