/** Query parameters that several lists have. */
import { z } from 'zod'
import { shownAs } from '../http/declared.ts'
import { filterText } from '../http/fields.ts'
import { DIGEST_PATTERN, DIGEST_RULE, isDigest } from '../images/digest.ts'
import { sourceNamed } from './names.ts'

/** Null without the parameter. */
export const fixable = shownAs(
  z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .nullable()
    .default(null),
  { type: 'boolean', description: 'With `true` only what some source has a fixed version for, with `false` only the rest.' },
)

/** A source of either column of names; null without the parameter, empty for a word that is none: of that there is nothing (S29). */
export const source = shownAs(
  filterText.transform((value) => (value === null ? null : (sourceNamed(value) ?? ''))),
  {
    type: 'string',
    description: 'Only what this source sent; blank is no filter.',
  },
)

/** The digest of one of the reports that answer; null without the parameter. */
export const reportDigest = shownAs(
  filterText.refine((value) => value === null || isDigest(value), DIGEST_RULE),
  {
    type: 'string',
    pattern: DIGEST_PATTERN,
    description: 'The `reportDigest` of the SBOM to read, where the image has several; else the first of `reports` is read.',
  },
)
