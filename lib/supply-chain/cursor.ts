/**
 * Opaque cursors of lists that are ordered by several keys: where a page ended, as those keys. Nothing is kept between pages, and what
 * is written or deleted in the meantime moves no row over the place where the next page begins.
 */
import { z } from 'zod'
import { orFirstPage } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'

type Key = string | number

/** The `nextAfter` of a page that ended with these keys. */
export const writeCursor = (keys: readonly Key[]): string => Buffer.from(JSON.stringify(keys)).toString('base64url')

/** A text that PostgreSQL can compare with. */
export const cursorText = z.string().refine((one) => !one.includes('\0') && one.isWellFormed())

/**
 * A query parameter `after`: what `writeCursor` wrote of keys that `schema` takes; null on the first page. What was not written so is
 * refused, since a list that begins somewhere else would look like the rest of it.
 */
export function cursor<S extends z.ZodType<readonly Key[]>>(schema: S) {
  return documentedAs(
    orFirstPage(
      z.string().transform((sent, c): z.output<S> => {
        const keys = schema.safeParse(parsed(Buffer.from(sent, 'base64url').toString()))
        if (keys.success && writeCursor(keys.data) === sent) return keys.data
        c.addIssue({ code: 'custom', message: 'expected the nextAfter of a page of this list' })
        return z.NEVER
      }),
      null,
    ),
    {
      type: 'string',
      'x-opaque': true,
      description: 'The `nextAfter` of the page before, as it is; blank is the first page.',
    },
  )
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
