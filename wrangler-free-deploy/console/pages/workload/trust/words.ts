/** Words for signatures and SBOMs. Valid is not trusted: a verdict is always shown with its signer. */
import type { JsonAnswer } from '../../../api/answers.ts'

export type Attestation = JsonAnswer<'/images/{digest}/attestation'>
type Signature = Attestation['signatures'][number]

/** The signer: an identity with its issuer, or a key. */
export function signerText({ signerKind, issuer, san, keyName, keyFingerprint, keyHint }: Partial<Signature>): string {
  if (signerKind === 'key' || (signerKind === undefined && (keyName ?? keyFingerprint ?? keyHint) !== undefined))
    return [keyName ?? 'a key', keyFingerprint ?? keyHint].filter(Boolean).join(' ')
  if (san === undefined && issuer === undefined) return 'nobody named'
  return `${san ?? 'an identity that is not named'}${issuer === undefined ? '' : `, by ${issuer}`}`
}

const PREDICATES: readonly (readonly [RegExp, string])[] = [
  [/slsa\.dev\/provenance/, 'SLSA provenance'],
  [/spdx/i, 'SPDX SBOM'],
  [/cyclonedx/i, 'CycloneDX SBOM'],
  [/openvex/i, 'OpenVEX'],
  [/in-toto.*test-result/, 'test result'],
  [/vuln/, 'vulnerability scan'],
]

export const predicateText = (type: string): string => PREDICATES.find(([pattern]) => pattern.test(type))?.[1] ?? type

const TRUSTS: Readonly<Record<string, string>> = {
  'attached-unbound': 'attached to the image, by nobody known',
  unverified: 'with a signature that did not verify',
  scanned: 'made by a scanner',
  verified: 'signed, and verified',
}

/** Empty if the source states none. */
export const trustText = (trust: string | null): string => (trust === null ? '' : (TRUSTS[trust] ?? trust))
