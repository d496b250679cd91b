/**
 * The relation between a verdict and its signatures (docs/contract.md#signatures-and-attestations). Attestations take
 * no part.
 */
import type { SignatureVerdict } from './entry.ts'
import { NO_SIGNER_IDENTITY, UNRECOGNISED, UNTRUSTED_KEY } from './reasons.ts'

/** The part of a signature that the verdict depends on. */
export interface SignatureStatus {
  readonly verified: boolean
  readonly error?: string | undefined
}

/** Errors that are evidence of tampering. */
const TAMPERS = ['bad_signature', 'digest_mismatch', 'malformed']

const firstTamper = (signatures: readonly SignatureStatus[]) =>
  signatures.find(({ error }) => error !== undefined && TAMPERS.includes(error))?.error
const isAny = (signatures: readonly SignatureStatus[], code: string) => signatures.some(({ error }) => error === code)

/** Derives the verdict from signatures of which none is verified any more. */
export function derivedVerdict(signatures: readonly SignatureStatus[]): { verdict: SignatureVerdict; reason: string } {
  const tamper = firstTamper(signatures)
  if (tamper !== undefined) return { verdict: 'invalid', reason: tamper }
  if (isAny(signatures, UNTRUSTED_KEY)) return { verdict: 'key_signed', reason: UNTRUSTED_KEY }
  return { verdict: 'unknown', reason: NO_SIGNER_IDENTITY }
}

/** Returns why signatures contradict a verdict, or null if they do not. */
export function contradiction(verdict: SignatureVerdict, signatures: readonly SignatureStatus[]): string | null {
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
