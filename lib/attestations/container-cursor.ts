/** The opaque cursors of the list of running containers (docs/contract.md#pages-and-lists). */
import { z } from 'zod'
import { cursorOf, cursorText } from '../http/request/cursor.ts'
import { documentedAs } from '../openapi/declare.ts'

/** The sort key of the list: cluster, namespace, kind and name of the workload, container, digest. */
const Keys = z.tuple([cursorText, cursorText, cursorText, cursorText, cursorText, cursorText]).readonly()
export type ContainerCursor = z.output<typeof Keys>

/** Sorts before every container. */
export const START: ContainerCursor = ['', '', '', '', '', '']

/** A cursor of names in which every character takes three bytes has about 5 000. */
export const MAX_CURSOR_CHARS = 8_192

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const CONTROL = /[\0-\x1f]/g
const CONTROL_ESCAPE = /\\(?:\\|u00[01][0-9a-f]|[bfnrt])/g

/**
 * Encodes the sort key as a JSON array in hexadecimal digits. Control characters are not escaped: a name may have 253
 * of them, and their escapes would exceed the length of a cursor.
 */
export const writeContainerCursor = (keys: ContainerCursor): string =>
  Buffer.from(JSON.stringify(keys).replace(CONTROL_ESCAPE, unescaped)).toString('hex')

const unescaped = (escaped: string): string => (escaped === '\\\\' ? escaped : JSON.parse(`"${escaped}"`))

/** The query parameter `after`: exactly the text that `writeContainerCursor` returned; null on the first page. */
export const containerCursor = documentedAs(cursorOf(Keys, parsed, writeContainerCursor), {
  type: 'string',
  maxLength: MAX_CURSOR_CHARS,
  'x-opaque': true,
  description: 'The `nextAfter` of the page before, as it is; blank is the first page.',
})

/** Text beyond the limit is cut, so that it is not what `writeContainerCursor` returned. */
function parsed(hex: string): unknown {
  const text = Buffer.from(hex.slice(0, MAX_CURSOR_CHARS), 'hex').toString()
  return JSON.parse(text.replace(CONTROL, (character) => JSON.stringify(character).slice(1, -1)))
}
