/**
 * Opaque cursors for lists with several sort keys: they hold the keys of the last row of a page. The server keeps no
 * state, and rows written or deleted between two pages move no other row across the cursor.
 */
import { z } from 'zod'
import { documentedAs } from '../../openapi/declare.ts'
import { orFirstPage } from './fields.ts'

type Key = string | number

/** Returns the `nextAfter` of a page whose last row has these keys. */
export const writeCursor = (keys: readonly Key[]): string => Buffer.from(JSON.stringify(keys)).toString('base64url')

/** Text that PostgreSQL can compare with. */
export const cursorText = z.string().refine((one) => !one.includes('\0') && one.isWellFormed())

/** The query parameter `after`: decodes a cursor of `writeCursor` whose keys match `schema`; null on the first page. */
export const cursor = <S extends z.ZodType<readonly Key[]>>(schema: S) =>
  documentedAs(
    cursorOf(schema, (sent) => JSON.parse(Buffer.from(sent, 'base64url').toString()), writeCursor),
    {
      type: 'string',
      'x-opaque': true,
      description: 'The `nextAfter` of the page before, unchanged; blank is the first page.',
    },
  )

/**
 * Reads a cursor: exactly the text that `write` makes of keys that match `schema`; `read` throws for other text.
 * Anything else is refused, since a list that starts elsewhere would look complete.
 */
export const cursorOf = <S extends z.ZodType<readonly Key[]>>(
  schema: S,
  read: (sent: string) => unknown,
  write: (keys: z.output<S>) => string,
) =>
  orFirstPage(
    z.string().transform((sent, c): z.output<S> => {
      try {
        const keys = schema.parse(read(sent))
        if (write(keys) === sent) return keys
      } catch {
        // Refused below.
      }
      c.addIssue({ code: 'custom', message: 'expected the nextAfter of a page of this list' })
      return z.NEVER
    }),
    null,
  )
