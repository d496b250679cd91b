/** What a verdict has to do with the signatures beside it; attestations take no part (interop-supply-chain 1.4). */
import type { Verdict } from './entry.ts'
import { NO_SIGNER_IDENTITY, UNRECOGNISED, UNTRUSTED_KEY } from './reasons.ts'

/** What is asked of a signature here. */
export interface Checked {
  readonly verified: boolean
  readonly error?: string | undefined
}

/** Errors that tell of somebody's hand. */
const TAMPERS = ['bad_signature', 'digest_mismatch', 'malformed']

// Of signatures none of which is verified.
const firstTamper = (signatures: readonly Checked[]) =>
  signatures.find(({ error }) => error !== undefined && TAMPERS.includes(error))?.error
const isAny = (signatures: readonly Checked[], code: string) => signatures.some(({ error }) => error === code)

/** The verdict that signatures give of which none is verified any more. */
export function derivedVerdict(signatures: readonly Checked[]): { verdict: Verdict; reason: string } {
  const tamper = firstTamper(signatures)
  if (tamper !== undefined) return { verdict: 'invalid', reason: tamper }
  if (isAny(signatures, UNTRUSTED_KEY)) return { verdict: 'key_signed', reason: UNTRUSTED_KEY }
  return { verdict: 'unknown', reason: NO_SIGNER_IDENTITY }
}

/** Why signatures contradict a verdict; null when they do not. */
export function contradiction(verdict: Verdict, signatures: readonly Checked[]): string | null {
  const isVerified = signatures.some((one) => one.verified)
  if (verdict === 'verified') return isVerified ? null : 'no signature is verified'
  if (verdict === 'unsigned') return signatures.length === 0 ? null : 'there are signatures'
  if (isVerified) return 'a signature is verified'
  const tamper = firstTamper(signatures)
  if (verdict === 'invalid') {
    return tamper !== undefined || isAny(signatures, UNRECOGNISED) ? null : 'no signature has an error that makes it so'
  }
  if (tamper !== undefined) return `a signature has the error ${tamper}`
  return verdict === 'unknown' || isAny(signatures, UNTRUSTED_KEY)
    ? null
    : `no signature has the error ${UNTRUSTED_KEY}`
}
