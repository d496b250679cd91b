/**
 * Opaque cursors for lists with several sort keys: they hold the keys of the last row of a page. The server keeps no
 * state, and rows written or deleted between two pages move no other row across the cursor.
 */
import { z } from 'zod'
import { orFirstPage } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'

type Key = string | number

/** Returns the `nextAfter` of a page whose last row has these keys. */
export const writeCursor = (keys: readonly Key[]): string => Buffer.from(JSON.stringify(keys)).toString('base64url')

/** Text that PostgreSQL can compare with. */
export const cursorText = z.string().refine((one) => !one.includes('\0') && one.isWellFormed())

/**
 * The query parameter `after`: decodes a cursor of `writeCursor` whose keys match `schema`; null on the first page.
 * Anything else is refused, since a list that starts elsewhere would look complete.
 */
export function cursor<S extends z.ZodType<readonly Key[]>>(schema: S) {
  return documentedAs(
    orFirstPage(
      z.string().transform((sent, c): z.output<S> => {
        const keys = schema.safeParse(parseOrUndefined(Buffer.from(sent, 'base64url').toString()))
        if (keys.success && writeCursor(keys.data) === sent) return keys.data
        c.addIssue({ code: 'custom', message: 'expected the nextAfter of a page of this list' })
        return z.NEVER
      }),
      null,
    ),
    {
      type: 'string',
      'x-opaque': true,
      description: 'The `nextAfter` of the page before, unchanged; blank is the first page.',
    },
  )
}

function parseOrUndefined(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
