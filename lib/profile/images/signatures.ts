/** The signatures of the images that a workload runs (docs/contract.md#workload-profiles). */
import { NO_SIGNER_IDENTITY } from '../../attestations/reasons.ts'
import { truncateToBytes } from '../../text/utf8.ts'
import { finding } from '../finding.ts'
import type { InventoryRow } from '../inventory.ts'
import type { Finding } from '../record/common.ts'
import { type Images, MAX_DIGESTS, type Signer, type SupplyChain, VERDICTS } from '../record/images.ts'
import { runningPairs } from './containers.ts'
import type { SignatureFacts, SignerFacts } from './facts.ts'

type Verdict = (typeof VERDICTS)[number]
type Checked = SupplyChain['digests'][number]
type Counts = SupplyChain['counts']

const MAX_IDENTITY_BYTES = 512
const MAX_KEY_NAME_BYTES = 256
const MAX_FINGERPRINT_BYTES = 128
const NOT_CHECKED = 'not_checked'

const NO_COUNTS: Counts = { verified: 0, keySigned: 0, unsigned: 0, invalid: 0, unknown: 0, notChecked: 0 }
const COUNTED: Readonly<Record<Verdict, keyof Counts>> = {
  ...{ verified: 'verified', key_signed: 'keySigned', unsigned: 'unsigned', invalid: 'invalid', unknown: 'unknown' },
}
/** The worst first. */
const WORDS: readonly (readonly [keyof Counts, string])[] = [
  ['invalid', 'invalid'],
  ['unsigned', 'not signed'],
  ['keySigned', 'signed with a key that is not known'],
  ['unknown', 'that could not be checked'],
  ['notChecked', 'not checked yet'],
  ['verified', 'verified'],
]

/** The block where the broker is told that nothing looks for signatures. */
const NOT_CONFIGURED: SupplyChain = {
  ...{ status: 'not_configured', verdict: 'not_configured', reason: null, container: null, digest: null, signers: [] },
  ...{ checkedAt: null, counts: NO_COUNTS, imageTrust: null, digests: [], truncated: false },
}

/** Judges the running images; null where nothing runs. The worst image decides, the first one of several. */
export function supplyChainOf(
  rows: readonly InventoryRow[],
  signatures: readonly SignatureFacts[],
  isDiscoveryConfigured: boolean,
): SupplyChain | null {
  const checked = checkedPairs(rows, signatures)
  if (checked.length === 0) return null
  if (!isDiscoveryConfigured) return NOT_CONFIGURED
  const rank = ({ verdict }: Checked) => VERDICTS.indexOf(verdict ?? 'unknown')
  const worst = checked.reduce((one, other) => (rank(other) < rank(one) ? other : one))
  const { container, digest, verdict, reason, signers, signersOmitted, checkedAt } = worst
  return {
    status: 'configured',
    verdict: verdict ?? 'unknown',
    reason: verdict === null ? NOT_CHECKED : reason,
    ...{ container, digest, signers, ...omitted(signersOmitted), checkedAt },
    counts: countsOf(checked),
    imageTrust: null,
    digests: checked.slice(0, MAX_DIGESTS),
    truncated: checked.length > MAX_DIGESTS,
  }
}

function checkedPairs(rows: readonly InventoryRow[], signatures: readonly SignatureFacts[]): Checked[] {
  const byDigest = new Map(signatures.map((one) => [one.digest, one]))
  return runningPairs(rows).map(({ container, digest }) => {
    const found = byDigest.get(digest)
    if (!found) return { container, digest, verdict: null, reason: null, signers: [], checkedAt: null }
    const { signerCount, checkedAt } = found
    const signers = found.signers.map(shownSigner)
    const verdict = verdictOf(found)
    const isUnnamed = found.verdict === 'verified' && verdict !== 'verified'
    const reason = isUnnamed ? NO_SIGNER_IDENTITY : found.reason
    return { ...{ container, digest, verdict, reason, signers }, ...omitted(signerCount - signers.length), checkedAt }
  })
}

const omitted = (count = 0) => (count > 0 ? { signersOmitted: count } : {})

/** A verified image whose signer is not named counts as unknown, and so does a word that is none of the verdicts. */
function verdictOf({ verdict, signers }: SignatureFacts): Verdict {
  if (verdict === 'verified' && signers.length === 0) return 'unknown'
  return VERDICTS.find((one) => one === verdict) ?? 'unknown'
}

function shownSigner({ kind, issuer, san, keyName, keyFingerprint }: SignerFacts): Signer {
  const cut = (text: string | null, maxBytes: number) => truncateToBytes(text ?? '', maxBytes)
  if (kind === 'keyless')
    return { signerKind: kind, issuer: cut(issuer, MAX_IDENTITY_BYTES), san: cut(san, MAX_IDENTITY_BYTES) }
  const fingerprint = cut(keyFingerprint, MAX_FINGERPRINT_BYTES)
  return { signerKind: kind, keyName: cut(keyName, MAX_KEY_NAME_BYTES) || null, keyFingerprint: fingerprint }
}

function countsOf(checked: readonly Checked[]): Counts {
  const counts = { ...NO_COUNTS }
  for (const { verdict } of checked) counts[verdict === null ? 'notChecked' : COUNTED[verdict]]++
  return counts
}

/** The counts in words, for reasons and for the message of the readiness check `imageSigned`. */
export function signatureText({ counts }: Pick<SupplyChain, 'counts'>): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const parts = WORDS.filter(([key]) => counts[key] > 0).map(([key, word]) => `${counts[key]} ${word}`)
  return `of ${total} running ${total === 1 ? 'image' : 'images'}: ${parts.join(', ')}`
}

/** The worst first. */
const FAULTS = [
  {
    verdict: 'invalid',
    rule: 'signatureInvalid',
    severity: 'high',
    title: 'runs an image with an invalid signature',
    detail: 'it is signed, and no signature verified. It was changed, or signed for another image.',
  },
  {
    verdict: 'unsigned',
    rule: 'unsigned',
    severity: 'low',
    title: 'runs an image without a signature',
    detail: 'no signature was found, so nothing says who built it.',
  },
  {
    verdict: 'key_signed',
    rule: 'signatureNotVerified',
    severity: 'low',
    title: 'runs an image whose signature was not verified',
    detail: 'it is signed with a key that the checker was not given.',
  },
] as const

/** One finding for each container and kind of fault. */
export function signatureFindings(
  rows: readonly InventoryRow[],
  signatures: readonly SignatureFacts[],
  isDiscoveryConfigured: boolean,
): Finding[] {
  if (!isDiscoveryConfigured) return []
  const checked = checkedPairs(rows, signatures)
  const containers = [...new Set(checked.map(({ container }) => container))]
  return containers.flatMap((container) =>
    FAULTS.flatMap(({ verdict, rule, severity, title, detail }) => {
      const [first, ...more] = checked.filter((one) => one.container === container && one.verdict === verdict)
      if (!first) return []
      const why = first.reason === null ? '' : ` (${first.reason})`
      const rest = more.length === 0 ? '' : ` So it is with ${more.length} more of its digests.`
      const texts = { title: `Container ${container} ${title}`, detail: `${first.digest}${why}: ${detail}${rest}` }
      return [finding('images', rule, severity, texts, container)]
    }),
  )
}

/**
 * The readiness check `imageSigned`: false where a running image is known not to be verified, null where one is not
 * known, the inventory was cut, nothing runs or nothing looks for signatures.
 */
export function imageSignedOf({ supplyChain, truncated }: Images): boolean | null {
  if (supplyChain === null || supplyChain.status === 'not_configured') return null
  const { invalid, unsigned, keySigned, unknown, notChecked } = supplyChain.counts
  if (invalid + unsigned + keySigned > 0) return false
  return truncated || unknown + notChecked > 0 ? null : true
}
