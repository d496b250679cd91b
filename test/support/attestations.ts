/** Stored results of image checks, for tests of reads and policies. */
import assert from 'node:assert/strict'
import type postgres from 'postgres'
import { Attestation, Signature, type SignatureVerdict } from '../../lib/attestations/entry.ts'

/** Fields of a signature or an attestation; a `tlogIndex` beyond 2^53 is a bigint. */
type Entry<T> = Omit<Partial<T>, 'tlogIndex'> & { tlogIndex?: number | bigint }

/** A result in the columns of its table, with objects for the lists. Derived columns cannot be given. */
export interface Result {
  repository?: string
  /** Default: `verified` with a verified signature, `unsigned` with none at all, else `unknown`. */
  verdict?: SignatureVerdict
  reason?: string | null
  trust_root?: string | null
  signed_via?: string | null
  signed_digest?: string | null
  signatures?: readonly Entry<Signature>[]
  attestations?: readonly Entry<Attestation>[]
  /** Naive UTC; the default is later than all earlier ones. */
  checked_at?: string
}

const MAX_SIGNERS = 8
const MAX_PREDICATES = 16
const MAX_SUMMARY_BYTES = 256

let made = 0

/** A verified signature of a keyless signer. */
export const signature = (fields: Entry<Signature> = {}): Entry<Signature> => ({
  format: 'cosign-bundle',
  source: 'referrers',
  verified: true,
  signerKind: 'keyless',
  issuer: 'https://token.actions.githubusercontent.com',
  san: 'https://github.com/team/app/.github/workflows/release.yml@refs/heads/main',
  ...fields,
})

/** Verified SLSA provenance of the same signer. */
export const statement = (fields: Entry<Attestation> = {}): Entry<Attestation> => ({
  ...signature(),
  format: 'bundle',
  predicateType: 'https://slsa.dev/provenance/v1',
  payloadSha256: 'ab'.repeat(32),
  provenance: { builderId: 'https://builder.test/v1', sourceRepo: 'https://git.test/team/app' },
  ...fields,
})

/** An unverified signature with its error. */
export const unverified = (error: string, fields: Entry<Signature> = {}): Entry<Signature> => ({
  format: 'cosign-bundle',
  source: 'referrers',
  verified: false,
  error,
  ...fields,
})

/** The row of a result. */
export function resultOf(digest: string, fields: Result = {}): Record<string, unknown> {
  made++
  const { signatures = [], attestations = [], ...given } = fields
  const verified = <T>(entries: readonly Entry<T & { verified: boolean }>[]) => entries.filter((one) => one.verified)
  const usual = verified(signatures).length > 0 ? 'verified' : signatures.length > 0 ? 'unknown' : 'unsigned'
  return {
    digest,
    repository: 'registry.test/team/app',
    verdict: usual,
    reason: null,
    trust_root: null,
    signed_via: null,
    signed_digest: null,
    signatures: list(Signature, signatures),
    attestations: list(Attestation, attestations),
    verified_signatures: list(Signature, verified(signatures), ['detail', 'error']),
    verified_attestations: list(Attestation, verified(attestations), ['detail', 'error', 'payloadSha256']),
    signers: distinct(verified(signatures).map(signerOf), MAX_SIGNERS),
    verified_predicates: distinct(
      verified(attestations).map((one) => cut(one.predicateType!)),
      MAX_PREDICATES,
    ),
    post: `post-${made}`,
    checked_at: new Date(Date.UTC(2024, 4, 1) + made * 1_000).toISOString().slice(0, 19),
    ...given,
  }
}

/** Stores a result over the previous one of the digest, and adds the image to the inventory. Resolves to its row. */
export async function storeAttestation(
  { sql }: { sql: postgres.Sql },
  digest: string,
  fields: Result = {},
): Promise<Record<string, unknown>> {
  const row = resultOf(digest, fields)
  await sql`
    insert into image values (${digest}, null, '{}', 'repo', now() at time zone 'utc', now() at time zone 'utc') on conflict do nothing`
  const [answer] = await sql`select store_attestation(${JSON.stringify(row)}::text::json) as answer`
  assert.equal(answer!.answer, 'stored')
  return row
}

/** In declared order, without blanks, and without the keys of `but`. */
function list(
  schema: typeof Signature | typeof Attestation,
  entries: readonly object[],
  but: readonly string[] = [],
): string {
  const keys = Object.keys(schema.shape).filter((key) => !but.includes(key))
  const ordered = entries.map((one) =>
    Object.fromEntries(keys.map((key) => [key, one[key as keyof typeof one] as unknown])),
  )
  const text = JSON.stringify(ordered, (_key, value) => (typeof value === 'bigint' ? `<${value}>` : value))
  return text.replace(/"<(-?\d+)>"/g, '$1')
}

function signerOf({ signerKind, issuer, san, keyName, keyFingerprint }: Entry<Signature>): object {
  if (signerKind === 'key') return { kind: 'key', keyName, keyFingerprint }
  return { kind: 'keyless', issuer: issuer && cut(issuer), san: san && cut(san) }
}

const distinct = (values: readonly unknown[], max: number): string =>
  `[${[...new Set(values.map((value) => JSON.stringify(value)))].slice(0, max).join(',')}]`

/** The first 256 bytes, without a partial character. */
function cut(text: string): string {
  let bytes = 0
  let kept = ''
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > MAX_SUMMARY_BYTES) break
    kept += character
  }
  return kept
}
