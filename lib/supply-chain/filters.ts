/** Query parameters that several lists have. */
import { z } from 'zod'
import { shownAs } from '../http/declared.ts'
import { filterText, NO_NULL_PATTERN } from '../http/fields.ts'
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
    pattern: NO_NULL_PATTERN,
    description: 'Only what this source sent; blank is no filter.',
  },
)
