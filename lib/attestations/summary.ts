/** What lists and the running feed show of a result, made once when it is stored (interop-supply-chain 3.7). */
import { exactJson } from '../json/exact-integers.ts'
import { truncateToBytes } from '../text/utf8.ts'
import type { Signature, Statement } from './entry.ts'

const MAX_SIGNERS = 8
const MAX_PREDICATES = 16
/** Of each text of a summary. */
export const MAX_SUMMARY_BYTES = 256

/** JSON texts: verified entries without what is of no use to who matches them, distinct signers, and distinct predicate types. */
export function summaryOf(signatures: readonly Signature[], attestations: readonly Statement[]) {
  const signed = signatures.filter((one) => one.verified)
  const stated = attestations.filter((one) => one.verified)
  const signers = new Set(signed.map((one) => JSON.stringify(signerOf(one))))
  const predicates = new Set(stated.map(({ predicateType }) => truncateToBytes(predicateType, MAX_SUMMARY_BYTES)))
  return {
    verified_signatures: exactJson(signed.map(({ error, detail, ...shown }) => shown)),
    verified_attestations: exactJson(stated.map(({ error, detail, payloadSha256, ...shown }) => shown)),
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
