import { INVISIBLE } from './one-line.ts'

const escapeOf = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
const LINE_OR_TAB = /[\n\r\t]/

/**
 * Writes invisible characters, which include all line ends of YAML 1.1 but LF and CR, as JSON escapes. In a JSON
 * document, and in a double-quoted scalar of YAML, they mean the same. Line feeds, carriage returns and tabs stay.
 */
export const withEscapes = (text: string): string =>
  text.replace(INVISIBLE, (found) => (LINE_OR_TAB.test(found) ? found : found.replace(/[\s\S]/g, escapeOf)))

/** The lines of a text as comments: each line that a parser of YAML 1.1 or 1.2 sees starts with `#`. */
export const commentedOut = (text: string): string =>
  withEscapes(text)
    .split(/\r\n|\n|\r/)
    .map((line) => (line === '' ? '#\n' : `# ${line}\n`))
    .join('')
