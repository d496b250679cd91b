/** Results as an image checker posts them. */
import { generateKeyPairSync } from 'node:crypto'
import type postgres from 'postgres'
import { digestOf } from '../support/images.ts'

export type Fields = Record<string, unknown>

let made = 0

/** A digest that no other test uses, and that the inventory does not have. */
export const newImage = () => digestOf(`checked-${made++}`)

/** A new digest that the inventory has. */
export async function knownImage(sql: postgres.Sql): Promise<string> {
  const digest = newImage()
  await sql`insert into image values (${digest}, null, '{}', 'repo', now() at time zone 'utc', now() at time zone 'utc')`
  return digest
}

const CHECKED_AT = Date.UTC(2026, 0, 1)
/** RFC 3339, this many seconds after the default time of results. */
export const checkedAt = (seconds = 0) => new Date(CHECKED_AT + seconds * 1_000).toISOString()

export const ISSUER = 'https://token.actions.test'
export const SAN = 'https://git.test/team/app/.github/workflows/release.yml@refs/tags/v1'
export const FINGERPRINT = 'ab'.repeat(32)

export const signature = (fields: Fields = {}): Fields => ({
  ...{ format: 'cosign-bundle', source: 'referrers', verified: true, signer_kind: 'keyless', issuer: ISSUER, san: SAN },
  ...fields,
})

export const keySignature = (fields: Fields = {}): Fields => ({
  ...{ format: 'cosign-bundle', verified: true, signer_kind: 'key', key_name: 'release', key_fingerprint: FINGERPRINT },
  ...fields,
})

export const unverified = (error: string, fields: Fields = {}): Fields => ({
  format: 'cosign-bundle',
  verified: false,
  error,
  ...fields,
})

export const SLSA = 'https://slsa.dev/provenance/v1'
export const PAYLOAD_SHA256 = 'cd'.repeat(32)

export const statement = (fields: Fields = {}): Fields => ({
  ...signature({ format: 'bundle' }),
  ...{ predicate_type: SLSA, payload_sha256: PAYLOAD_SHA256 },
  ...fields,
})

export const resultOf = (digest: string, fields: Fields = {}): Fields => ({
  ...{ schema_version: 1, digest, repository: 'registry.test/team/app', checked_at: checkedAt(), verdict: 'verified' },
  ...{ signatures: [signature()], attestations: [] },
  ...fields,
})

export const PEM = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString()
