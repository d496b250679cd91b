import { z } from 'zod'
import { text } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'

/** The worst first. The place of a name is the number it is stored by (supply-chain, Finding). */
export const SEVERITIES = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'] as const

/** A severity as answers hold it. */
export const severityName = z.enum(SEVERITIES).meta({ id: 'Severity' })

type SeverityName = (typeof SEVERITIES)[number]

/**
 * What vendors and scanners write for one of the six. Negligible (Grype, Ubuntu) and unimportant (Debian) are ratings: a vendor looked at it
 * and puts it below LOW. Of the six only NONE is there; as UNKNOWN it would stand behind what nobody has rated.
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

/** The number that a word is stored by, in any case and with blanks around it; that of UNKNOWN for any other text, and for none. */
export const severityNumber = (word: string | null | undefined): number =>
  NUMBERS.get(word?.trim().toUpperCase() ?? '') ?? SEVERITIES.indexOf('UNKNOWN')

/** Severities that follow one another in the order of an index, from the first to the last. */
export interface SeverityRun {
  severity: number
  last: number
}

/** The runs of these severities from `from` on, in their order. */
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

/** A query parameter `severity`: names with commas between them, in any case; becomes their numbers, each once and the worst first. */
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
    description: `Of these severities: names with commas between them, in any case, of ${SEVERITIES.join(', ')}. All unless sent; blank is no filter.`,
  },
)
