/** Query parameters that several lists have. */
import { z } from 'zod'
import { filter, filterText, NO_NULL_PATTERN } from '../http/request/fields.ts'
import { DIGEST_PATTERN, DIGEST_RULE, isDigest } from '../images/digest.ts'
import { documentedAs } from '../openapi/declare.ts'
import { sourceNamed } from '../wire-names/index.ts'
import { VULNERABILITY, VULNERABILITY_RULE } from './exposure.ts'
import { TIERS, type Tier, tierPositions, USE_STATES, type UseState } from './in-use.ts'

/** Filters that all lists of vulnerabilities have; null means any. */
export interface VulnerabilityFilter {
  readonly severities: readonly number[]
  readonly fixable: boolean | null
  readonly vulnId: string | null
  readonly package: string | null
  readonly kev: boolean | null
  readonly epssMin: number | null
  readonly tiers: readonly Tier[] | null
  readonly states: readonly UseState[] | null
}

/** The values of the filters that need more than the order of a list has. */
export const lookUpsOf = ({ vulnId, package: packageName, kev, epssMin, states, tiers }: VulnerabilityFilter) => {
  const useNumbers = states && JSON.stringify(states.map((one) => USE_STATES.indexOf(one)))
  const tierNumbers = tiers && JSON.stringify(tierPositions(tiers))
  const values = [vulnId, packageName, kev, epssMin, useNumbers, tierNumbers] as const
  return values.some((one) => one !== null) ? values : null
}

/** Null without the parameter. */
const flag = (description: string) =>
  documentedAs(
    z
      .enum(['true', 'false'])
      .transform((value) => value === 'true')
      .nullable()
      .default(null),
    { type: 'boolean', description },
  )

export const fixable = flag('`true`: only findings with a fixed version in some source; `false`: only the others.')

export const running = flag('`true`: only in images that a container runs; `false`: only in the others.')

export const kev = flag(
  '`true`: only vulnerabilities known to be exploited; `false`: only those that a source says are not. Unknown ones ' +
    'are in neither list.',
)

/** Names separated by commas, in any case, as they are written in answers; null without any. */
function namesOf<N extends string>(all: readonly N[], what: string) {
  const anyCase = (name: string) => name.replace(/[a-z]/gi, (c) => `[${c.toUpperCase()}${c.toLowerCase()}]`)
  const any = all.map(anyCase).join('|')
  return documentedAs(
    filterText.transform((list, c): readonly N[] | null => {
      const wanted = new Set((list ?? '').split(',').map((name) => name.trim().toLowerCase()))
      wanted.delete('')
      const unknown = [...wanted].find((name) => !all.some((one) => one.toLowerCase() === name))
      if (unknown === undefined) return wanted.size === 0 ? null : all.filter((one) => wanted.has(one.toLowerCase()))
      c.addIssue({ code: 'custom', message: `${JSON.stringify(unknown)} is not one of ${all.join(', ')}` })
      return z.NEVER
    }),
    {
      type: 'string',
      pattern: `^\\s*(?:${any})?\\s*(?:,\\s*(?:${any})?\\s*)*$`,
      description: `Only ${what}: names separated by commas, in any case, of ${all.join(', ')}; blank is no filter.`,
    },
  )
}

export const tiers = namesOf(TIERS, 'these tiers')

export const useStates = namesOf(USE_STATES, 'these states of use')

/** Null without the parameter. */
export const epssMin = documentedAs(
  filterText.transform((text, c) => {
    if (text === null) return null
    const number = /^\d*\.?\d+(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
    if (number >= 0 && number <= 1) return number
    c.addIssue({ code: 'custom', message: 'expected a number from 0 to 1' })
    return z.NEVER
  }),
  {
    type: 'number',
    minimum: 0,
    maximum: 1,
    description: 'Only vulnerabilities with at least this EPSS; blank is no filter.',
  },
)

/** Null without the parameter. */
export const vulnId = documentedAs(
  filterText.refine((text) => text === null || VULNERABILITY.test(text), VULNERABILITY_RULE),
  {
    type: 'string',
    pattern: `^\\s*$|${VULNERABILITY.source}`,
    description: 'Only the vulnerability with this id or alias, in any case; blank is no filter.',
  },
)

export const packageName = filter('Only vulnerabilities of the package with this exact name')

/**
 * A source, by either of its names; null without the parameter. An unknown word becomes the empty text, which matches
 * nothing: the data of another source must not answer for it (docs/contract.md#findings).
 */
export const source = documentedAs(
  filterText.transform((value) => (value === null ? null : (sourceNamed(value) ?? ''))),
  {
    type: 'string',
    pattern: NO_NULL_PATTERN,
    description: 'Only data of this source; blank is no filter.',
  },
)

/** The digest of one of the reports that answer; null without the parameter. */
export const reportDigest = documentedAs(
  filterText.refine((value) => value === null || isDigest(value), DIGEST_RULE),
  {
    type: 'string',
    pattern: `^\\s*$|${DIGEST_PATTERN}`,
    description:
      'The `reportDigest` of the SBOM to read, if the image has several; the default is the first of `reports`.',
  },
)
