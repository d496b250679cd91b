/** The summary of a result for lists and the running feed, computed once when the result is stored. */
import { exactJson } from '../json/exact-integers.ts'
import { truncateToBytes } from '../text/utf8.ts'
import type { Attestation, Signature } from './entry.ts'

const MAX_SIGNERS = 8
const MAX_PREDICATES = 16
/** Longest text of a summary, in bytes. */
export const MAX_SUMMARY_BYTES = 256

/**
 * Returns JSON texts: verified entries without fields that policies do not match, distinct signers, and distinct
 * predicate types.
 */
export function summaryOf(signatures: readonly Signature[], attestations: readonly Attestation[]) {
  const signed = signatures.filter((one) => one.verified)
  const stated = attestations.filter((one) => one.verified)
  const signers = new Set(signed.map((one) => JSON.stringify(signerOf(one))))
  const predicates = new Set(stated.map(({ predicateType }) => truncateToBytes(predicateType, MAX_SUMMARY_BYTES)))
  return {
    verified_signatures: exactJson(signed.map(({ error, detail, ...rest }) => rest)),
    verified_attestations: exactJson(stated.map(({ error, detail, payloadSha256, ...rest }) => rest)),
    signers: `[${[...signers].slice(0, MAX_SIGNERS).join(',')}]`,
    verified_predicates: JSON.stringify([...predicates].slice(0, MAX_PREDICATES)),
  }
}

function signerOf({ signerKind, issuer = '', san = '', keyName, keyFingerprint }: Signature): object {
  if (signerKind === 'key') return { kind: 'key', keyName, keyFingerprint }
  return {
    kind: 'keyless',
    issuer: truncateToBytes(issuer, MAX_SUMMARY_BYTES),
    san: truncateToBytes(san, MAX_SUMMARY_BYTES),
  }
}
