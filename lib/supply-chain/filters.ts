/** Query parameters that several lists have. */
import { z } from 'zod'
import { filter, filterText, NO_NULL_PATTERN } from '../http/request/fields.ts'
import { DIGEST_PATTERN, DIGEST_RULE, isDigest } from '../images/digest.ts'
import { documentedAs } from '../openapi/declare.ts'
import { sourceNamed } from '../wire-names/index.ts'
import { VULNERABILITY, VULNERABILITY_RULE } from './exposure.ts'

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

export const fixable = flag('With `true` only what some source has a fixed version for, with `false` only the rest.')

export const kev = flag(
  'With `true` only what is known to be exploited, with `false` only what a source says is not; what is unknown is in neither.',
)

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
    description: 'Only what has an EPSS of so much or more; blank is no filter.',
  },
)

/** Null without the parameter. */
export const vulnId = documentedAs(
  filterText.transform((text, c) => {
    if (text === null || VULNERABILITY.test(text)) return text
    c.addIssue({ code: 'custom', message: VULNERABILITY_RULE })
    return z.NEVER
  }),
  {
    type: 'string',
    pattern: `^\\s*$|${VULNERABILITY.source}`,
    description:
      'Only the vulnerability with this id, or this as one of its other ids, in any case; blank is no filter.',
  },
)

export const packageName = filter('Only what this package has, by its name as it is written')

/** A source of either column of names; null without the parameter, empty for a word that is none: of that there is nothing (S29). */
export const source = documentedAs(
  filterText.transform((value) => (value === null ? null : (sourceNamed(value) ?? ''))),
  {
    type: 'string',
    pattern: NO_NULL_PATTERN,
    description: 'Only what this source sent; blank is no filter.',
  },
)

/** The digest of one of the reports that answer; null without the parameter. */
export const reportDigest = documentedAs(
  filterText.refine((value) => value === null || isDigest(value), DIGEST_RULE),
  {
    type: 'string',
    pattern: `^\\s*$|${DIGEST_PATTERN}`,
    description:
      'The `reportDigest` of the SBOM to read, where the image has several; else the first of `reports` is read.',
  },
)
