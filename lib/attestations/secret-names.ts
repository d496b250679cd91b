/** Names whose values nobody should read: of parameters, headers and settings (interop-supply-chain 1.4). */

/** Longer ones are judged by their ends. */
const MAX_NAME_CHARS = 64

const ANY =
  /token|passw|passphrase|pwd|secret|credential|signature|authorization|cookie|session|bearer|jwt|(?:^|[^a-z0-9])x-(?:amz|goog|ms)-|(?:access|key)[_-]?id/i
const LAST = /(?:key|key-pair-id|(?:^|[^a-z0-9])(?:sig|auth|pass|pw|sas|policy))$/i
/** An OAuth code; a colon follows codes of errors. */
const CODE = /(?:^|[^a-z0-9])code$/i
/** What stands in a sentence for what it says as well: `untrusted_key: none matches`, `no matching signatures: `. */
const PROSE = /(?:keys?|sigs?|signatures?)$|^(?:tokens?|credentials|auth|pass|session)$/i
/** What a sentence has a value behind without any sign between: `invalid token a1b2c3`, `--password a1b2c3`. */
const SAID = /^-{0,2}(?:token|password|passwd|passphrase|secret)$/i

/** A word of a sentence, a code of errors, a number of one. */
const PLAIN = /^(?:\p{Ll}+(?:[_-]\p{Ll}+){0,3}|[A-Z]+(?:_[A-Z]+){0,5}|(?:[A-Z][a-z]+){1,3}|\d{1,5})[.:!?]?$/u
const MAX_PLAIN_CHARS = 24
const DIGEST = /^sha\d{3}:[0-9a-f]+[.:!?]?$/
/** Digits among letters; no version. */
const MIXED = /^(?!v?\d+(?:\.\d+)+(?:[-+][\w.]{1,24})?[.:?]?$)(?=\D*\d)(?=\P{L}*\p{L})[\w+/=~!*.-]{6,}[:?]?$/u

export type Separator = '=' | ':'

/** Whether what follows such a name is a secret. */
export function isSecretName(name: string, separator: Separator): boolean {
  const end = name.slice(-MAX_NAME_CHARS)
  return ANY.test(end) || LAST.test(end) || (separator === '=' && CODE.test(end))
}

/** Whether a name is one of codes, of OAuth or of errors. */
export function isCode(name: string): boolean {
  const end = name.slice(-MAX_NAME_CHARS)
  return CODE.test(end) && !ANY.test(end)
}

/** Whether what follows such a name after a blank may be the rest of a sentence. */
export const isProse = (name: string): boolean => PROSE.test(name.slice(-MAX_NAME_CHARS))

/** Whether a word is one of a sentence rather than a secret. */
export const isPlain = (word: string): boolean =>
  (word.length <= MAX_PLAIN_CHARS && PLAIN.test(word)) || DIGEST.test(word)

/** Whether a word behind a name, with nothing but blanks or quotes between, is its value. */
export const isSaidSecret = (name: string, word: string): boolean => SAID.test(name) && MIXED.test(word)
