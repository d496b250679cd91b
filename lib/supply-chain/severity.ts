import { z } from 'zod'
import { text } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'

/** The worst first. A severity is stored as its index in this list. */
export const SEVERITIES = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'] as const

/** A severity as answers hold it. */
export const severityName = z.enum(SEVERITIES).meta({ id: 'Severity' })

type SeverityName = (typeof SEVERITIES)[number]

/**
 * Words that vendors and scanners use for one of the six. `negligible` (Grype, Ubuntu) and `unimportant` (Debian) are
 * ratings below LOW: a vendor looked at it. NONE is the only such level here; UNKNOWN would list them after unrated
 * findings.
 */
const OTHER_WORDS: Readonly<Record<string, SeverityName>> = {
  IMPORTANT: 'HIGH',
  MODERATE: 'MEDIUM',
  NEGLIGIBLE: 'NONE',
  UNIMPORTANT: 'NONE',
}

const NUMBERS = new Map<string, number>([
  ...SEVERITIES.map((name, number) => [name, number] as const),
  ...Object.entries(OTHER_WORDS).map(([word, name]) => [word, SEVERITIES.indexOf(name)] as const),
])

/**
 * Returns the stored number of a word, in any case and with outer blanks; that of UNKNOWN for any other text or none.
 */
export const severityNumber = (word: string | null | undefined): number =>
  NUMBERS.get(word?.trim().toUpperCase() ?? '') ?? SEVERITIES.indexOf('UNKNOWN')

/** Consecutive severities in index order, from the first to the last. */
interface SeverityRun {
  severity: number
  last: number
}

/** Splits severities into runs, starting at `from`. */
export function severityRuns(numbers: readonly number[], from: number): SeverityRun[] {
  const runs: SeverityRun[] = []
  for (const severity of numbers.filter((one) => one >= from)) {
    const before = runs.at(-1)
    if (before?.last === severity - 1) before.last = severity
    else runs.push({ severity, last: severity })
  }
  return runs
}

const ALL = SEVERITIES.map((_, number) => number)

const inAnyCase = (name: string) => [...name].map((letter) => `[${letter}${letter.toLowerCase()}]`).join('')
const ANY_SEVERITY = SEVERITIES.map(inAnyCase).join('|')

/**
 * The query parameter `severity`: names separated by commas, in any case. Becomes their numbers, the worst first,
 * without repeats.
 */
export const severities = documentedAs(
  text
    .transform((list, c) => {
      const names = list.toUpperCase().split(',')
      const wanted = new Set(names.map((name) => name.trim()).filter((name) => name !== ''))
      const unknown = [...wanted].find((name) => !(SEVERITIES as readonly string[]).includes(name))
      if (unknown === undefined)
        return wanted.size === 0 ? ALL : ALL.filter((number) => wanted.has(SEVERITIES[number]!))
      c.addIssue({ code: 'custom', message: `${JSON.stringify(unknown)} is not one of ${SEVERITIES.join(', ')}` })
      return z.NEVER
    })
    .default(ALL),
  {
    type: 'string',
    pattern: `^\\s*(?:${ANY_SEVERITY})?\\s*(?:,\\s*(?:${ANY_SEVERITY})?\\s*)*$`,
    description:
      `Only these severities: names separated by commas, in any case, of ${SEVERITIES.join(', ')}. ` +
      'All unless sent; blank is no filter.',
  },
)
