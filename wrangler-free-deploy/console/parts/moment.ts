/** Times as numbers and texts. */

const MS_PER_MINUTE = 60_000
const STEPS = [
  { unit: 'd', ms: 86_400_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'min', ms: MS_PER_MINUTE },
  { unit: 's', ms: 1_000 },
] as const

const sameYear = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const otherYear = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** Parses a time of the API; some routes send UTC without a zone. NaN for any other text. */
export function toMs(at: string): number {
  return Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(at) ? at : `${at}Z`)
}

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: MS_PER_MINUTE,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** A `since` or `until` of the address in milliseconds: a time, or a distance such as `7d`. NaN for any other text. */
export function momentMs(text: string, nowMs: number): number {
  const distance = /^(\d{1,9})([smhdw])$/.exec(text)
  return distance === null ? toMs(text) : nowMs - Number(distance[1]) * UNIT_MS[distance[2]!]!
}

/** A time in UTC with its zone, in whole seconds. */
export const zonedText = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** `12 min` or `3 d`: the largest unit that fits. */
export function durationText(ms: number): string {
  const step = STEPS.find((one) => ms >= one.ms) ?? STEPS.at(-1)!
  return `${Math.floor(ms / step.ms)} ${step.unit}`
}

/** A time as text in the local zone and format. */
export function localText(at: string): string {
  const ms = toMs(at)
  if (Number.isNaN(ms)) return at
  const date = new Date(ms)
  return (date.getFullYear() === new Date().getFullYear() ? sameYear : otherYear).format(date)
}

export function utcText(at: string): string {
  const ms = toMs(at)
  return Number.isNaN(ms)
    ? at
    : `${new Date(ms)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, '')} UTC`
}
