/** Texts from untrusted clients in YAML that is written by hand. */
import { INVISIBLE } from './one-line.ts'

/** Words that no parser takes for anything else, such as names of DNS labels. */
const PLAIN = /^[A-Za-z][A-Za-z0-9-]*$/
/** Special words, and texts that some parsers read as numbers. */
const SPECIAL = /^(?:y|n|yes|no|on|off|true|false|null|e[0-9].*|e-[0-9].*)$/i

const BMP_HEX_DIGITS = 4
const ASTRAL_HEX_DIGITS = 8

/** A text as a scalar on one line, which parsers of versions 1.1 and 1.2 read alike; quoted unless it is plain. */
export const yamlScalar = (text: string): string =>
  PLAIN.test(text) && !SPECIAL.test(text) ? text : JSON.stringify(text).replace(INVISIBLE, escaped)

function escaped(character: string): string {
  const isBmp = character.length === 1
  const hex = character.codePointAt(0)!.toString(16)
  return isBmp ? `\\u${hex.padStart(BMP_HEX_DIGITS, '0')}` : `\\U${hex.padStart(ASTRAL_HEX_DIGITS, '0')}`
}
