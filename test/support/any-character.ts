import fc from 'fast-check'

const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800

/**
 * Any code point but a surrogate. For the unit `binary`, which does the same, fast-check makes a table of a million
 * entries, which takes a second.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES), numberOf)

function numberOf(text: unknown): number {
  if (typeof text !== 'string' || !/^[^\ud800-\udfff]$/su.test(text)) throw new Error('not one character')
  const code = text.codePointAt(0)!
  return code < FIRST_SURROGATE ? code : code - SURROGATES
}
