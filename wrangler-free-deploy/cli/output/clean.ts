/** Texts of a cluster must not move the cursor of a terminal, hide what follows or reverse it. */
import { INVISIBLE, oneLine } from '../../../lib/text/one-line.ts'

/** The text with its lines, and spaces for all other invisible characters. */
export const cleanText = (text: string): string => text.split('\n').map(oneLine).join('\n')

/** JSON with the same values: invisible characters are written as escapes. */
export const cleanJson = (text: string): string =>
  text.replace(INVISIBLE, (found) => {
    if (found === '\n') return found
    // Raw tabs and returns can only stand between values.
    if (found === '\t' || found === '\r') return ' '
    return Array.from({ length: found.length }, (_, i) => escapeOf(found.charCodeAt(i))).join('')
  })

const escapeOf = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`
