/** Names whose values nobody should read: of parameters, headers and settings (interop-supply-chain 1.4). */

/** Longer ones are judged by their ends. */
const MAX_NAME_CHARS = 64

/** What stands in a sentence before a colon is no secret for these: `untrusted_key: none matches`, `invalid signature: `. */
const PROSE = /(?:key|sig|signature|auth|pass|pw|session)$/i
const ANY =
  /token|passw|passphrase|pwd|secret|credential|signature|authorization|cookie|session|bearer|jwt|(?:^|[^a-z0-9])x-(?:amz|goog|ms)-|(?:access|key)id/i
const LAST = /(?:key|key-pair-id|(?:^|[^a-z0-9])(?:sig|auth|pass|pw|sas|policy))$/i
/** An OAuth code; a colon follows codes of errors. */
const CODE = /(?:^|[^a-z0-9])code$/i

export type Separator = '=' | ':'

/** Whether what follows such a name is a secret; `isLast` where a blank follows, as in a sentence. */
export function isSecretName(name: string, separator: Separator, isLast = false): boolean {
  const end = name.slice(-MAX_NAME_CHARS)
  if (separator === '=') return ANY.test(end) || LAST.test(end) || CODE.test(end)
  return (ANY.test(end) || LAST.test(end)) && !(isLast && PROSE.test(end))
}
