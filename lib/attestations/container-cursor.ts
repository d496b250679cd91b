/** Places in the list of running containers, and the opaque cursors that tell of them (interop-supply-chain 3.7). */
import { z } from 'zod'
import { orFirstPage } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { cursorText } from '../supply-chain/index.ts'

/** What the list is ordered by. */
export type ContainerCursor = readonly [
  cluster: string,
  namespace: string,
  kind: string,
  name: string,
  container: string,
  digest: string,
]

/** Before every container. */
export const START: ContainerCursor = ['', '', '', '', '', '']

const Keys = z.tuple([cursorText, cursorText, cursorText, cursorText, cursorText, cursorText])

/** A place needs about 5 000 where every character of its names takes three bytes. */
export const MAX_CURSOR_CHARS = 8_192

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these.
const CONTROL = /[\0-\x1f]/g
const CONTROL_ESCAPE = /\\(?:\\|u00[01][0-9a-f]|[bfnrt])/g

/**
 * The hexadecimal digits of a JSON array of its keys. Control characters stand in it as they are: names may have 253 of them, and their escapes
 * would come to more than a cursor may have.
 */
export const writeContainerCursor = (place: ContainerCursor): string =>
  Buffer.from(JSON.stringify(place).replace(CONTROL_ESCAPE, unescaped)).toString('hex')

const unescaped = (escaped: string): string => (escaped === '\\\\' ? escaped : JSON.parse(`"${escaped}"`))

/** A query parameter `after`: what `writeContainerCursor` wrote, to the letter; null on the first page. */
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
