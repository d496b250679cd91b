/** The opaque cursors of the list of running containers (docs/contract.md#pages-and-lists). */
import { z } from 'zod'
import { orFirstPage } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { cursorText } from '../supply-chain/index.ts'

/** The sort key of the list. */
export type ContainerCursor = readonly [
  cluster: string,
  namespace: string,
  kind: string,
  name: string,
  container: string,
  digest: string,
]

/** Sorts before every container. */
export const START: ContainerCursor = ['', '', '', '', '', '']

const Keys = z.tuple([cursorText, cursorText, cursorText, cursorText, cursorText, cursorText])

/** A cursor of names in which every character takes three bytes has about 5 000. */
export const MAX_CURSOR_CHARS = 8_192

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const CONTROL = /[\0-\x1f]/g
const CONTROL_ESCAPE = /\\(?:\\|u00[01][0-9a-f]|[bfnrt])/g

/**
 * Encodes the sort key as a JSON array in hexadecimal digits. Control characters are not escaped: a name may have 253
 * of them, and their escapes would exceed the length of a cursor.
 */
export const writeContainerCursor = (place: ContainerCursor): string =>
  Buffer.from(JSON.stringify(place).replace(CONTROL_ESCAPE, unescaped)).toString('hex')

const unescaped = (escaped: string): string => (escaped === '\\\\' ? escaped : JSON.parse(`"${escaped}"`))

/** The query parameter `after`: exactly the text that `writeContainerCursor` returned; null on the first page. */
export const containerCursor = documentedAs(
  orFirstPage(
    z.string().transform((sent, c): ContainerCursor => {
      const keys = sent.length <= MAX_CURSOR_CHARS ? Keys.safeParse(parsed(sent)) : undefined
      if (keys?.success && writeContainerCursor(keys.data) === sent) return keys.data
      c.addIssue({ code: 'custom', message: 'expected the nextAfter of a page of this list' })
      return z.NEVER
    }),
    null,
  ),
  {
    type: 'string',
    maxLength: MAX_CURSOR_CHARS,
    'x-opaque': true,
    description: 'The `nextAfter` of the page before, as it is; blank is the first page.',
  },
)

function parsed(hex: string): unknown {
  const text = Buffer.from(hex, 'hex').toString()
  try {
    return JSON.parse(text.replace(CONTROL, (character) => JSON.stringify(character).slice(1, -1)))
  } catch {
    return undefined
  }
}
