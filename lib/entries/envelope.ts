/** Bodies that hold entries: agents repeat a post until it is accepted, so only a broken envelope is refused. */
import { z } from 'zod'
import { NOT_BLANK_PATTERN } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { isLongerThan } from '../text/utf8.ts'
import type { EntrySchema } from './entry-schema.ts'
import { MAX_NAME_BYTES } from './fields.ts'

/** The node that posts. */
export const nodeName = documentedAs(
  z
    .string()
    .refine(
      (name) => name.trim() !== '' && !isLongerThan(name, MAX_NAME_BYTES),
      `expected 1 to ${MAX_NAME_BYTES} bytes, not blank`,
    ),
  {
    type: 'string',
    minLength: 1,
    maxLength: MAX_NAME_BYTES,
    pattern: NOT_BLANK_PATTERN,
    description: `Not blank, at most ${MAX_NAME_BYTES} bytes.`,
  },
)

/** A list of entries. Its length and its entries are checked later. */
export const entryList = (entry: EntrySchema<z.ZodType>, maxItems: number, description: string) =>
  documentedAs(z.custom<unknown[]>(Array.isArray, 'expected an array'), {
    type: 'array',
    maxItems,
    items: entry.json,
    description,
  })
