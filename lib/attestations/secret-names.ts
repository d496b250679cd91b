/** Names of parameters, headers and settings whose values are secret, for `redact`. */

/** Of a longer name only the end is examined. */
const MAX_NAME_CHARS = 64

const ANY = new RegExp(
  'token|passw|passphrase|pwd|secret|credential|signature|authorization|cookie|session|bearer|jwt' +
    '|(?:^|[^a-z0-9])x-(?:amz|goog|ms)-|(?:access|key)[_-]?id',
  'i',
)
const LAST = /(?:key|key-pair-id|(?:^|[^a-z0-9])(?:sig|auth|pass|pw|sas|policy))$/i
/** An OAuth code. Before a colon `code` is usually an error code. */
const CODE = /(?:^|[^a-z0-9])code$/i
/**
 * Names that also occur in ordinary sentences before a colon: `untrusted_key: none matches`, `no matching signatures:
 * `.
 */
const PROSE = /(?:keys?|sigs?|signatures?)$|^(?:tokens?|credentials|auth|pass|session)$/i
/** Names that are followed by a value without any sign between: `invalid token a1b2c3`, `--password a1b2c3`. */
const INLINE_NAME = /^-{0,2}(?:token|password|passwd|passphrase|secret)$/i

/** An ordinary word, an error code or a short number. */
const PROSE_WORD = /^(?:\p{Ll}+(?:[_-]\p{Ll}+){0,3}|[A-Z]+(?:_[A-Z]+){0,5}|(?:[A-Z][a-z]+){1,3}|\d{1,5})[.:!?]?$/u
const MAX_PROSE_WORD_CHARS = 24
const DIGEST = /^sha\d{3}:[0-9a-f]+[.:!?]?$/
/** A word of digits and letters that is no version. */
const MIXED = /^(?!v?\d+(?:\.\d+)+(?:[-+][\w.]{1,24})?[.:?]?$)(?=\D*\d)(?=\P{L}*\p{L})[\w+/=~!*.-]{6,}[:?]?$/u

export type Separator = '=' | ':'

/** Whether the value after such a name is a secret. */
export function isSecretName(name: string, separator: Separator): boolean {
  const end = name.slice(-MAX_NAME_CHARS)
  return ANY.test(end) || LAST.test(end) || (separator === '=' && CODE.test(end))
}

/** Whether a name is that of a code, of OAuth or of an error. */
export function isCode(name: string): boolean {
  const end = name.slice(-MAX_NAME_CHARS)
  return CODE.test(end) && !ANY.test(end)
}

/** Whether the text after such a name and a blank may be the rest of a sentence. */
export const isAlsoProse = (name: string): boolean => PROSE.test(name.slice(-MAX_NAME_CHARS))

/** Whether a word is part of a sentence rather than a secret. */
export const isProseWord = (word: string): boolean =>
  (word.length <= MAX_PROSE_WORD_CHARS && PROSE_WORD.test(word)) || DIGEST.test(word)

/** Whether `word` is the value of `name` with only blanks or quotes between them. */
export const isInlineSecret = (name: string, word: string): boolean => INLINE_NAME.test(name) && MIXED.test(word)
