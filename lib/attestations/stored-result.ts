/** One result of checking an image, whole (supply-chain, Attestation result; interop-supply-chain 3.7). */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { storedJson } from '../records/column-kinds.ts'
import { plainColumns, plainRow } from '../records/index.ts'
import { toWireFormats, type WireNames } from '../supply-chain/index.ts'
import { Signature, Statement, verdict } from './entry.ts'
import { redactDetails } from './redact.ts'

/** What is known of the check itself, in every answer about it. */
export const reason = z
  .string()
  .nullable()
  .describe('A code that says why the verdict is not a better one; null where there is none.')

/** GET /images/{digest}/attestation. */
export const AttestationResult = z
  .strictObject({
    digest: digestText,
    repository: z.string(),
    verdict,
    reason,
    trustRoot: z.string().nullable().describe('Trust root that signatures were verified with.'),
    signedVia: z
      .string()
      .nullable()
      .describe('`self`, or `index` where the signature is on the multi-arch index that lists the digest.'),
    signedDigest: z.string().nullable().describe('That index.'),
    signatures: storedJson(z.array(Signature)),
    attestations: storedJson(z.array(Statement)),
    checkedAt: wireTime,
    receivedAt: wireTime,
  })
  .meta({ id: 'AttestationResult' })

const RESULT = fixed(
  `select ${plainColumns(AttestationResult, 'a')} from image_attestation a where a.digest = $1 and a.checked_at >= retention_start($2::integer)`,
)
const [SIGNATURES, ATTESTATIONS] = ['signatures', 'attestations'].map((key) =>
  Object.keys(AttestationResult.shape).indexOf(key),
)

/**
 * The result of a digest as JSON, null without one that was checked within the days that it is kept. Its lists are the text that was stored, to the digit of every number. Each `detail` is
 * redacted once more: what an earlier version stored was perhaps less so.
 */
export async function readResult(
  gate: Gate,
  digest: string,
  retentionDays: number,
  names: WireNames,
): Promise<Buffer | null> {
  const [row] = await gate((sql) => RESULT(sql, digest, retentionDays).raw())
  if (!row) return null
  for (const list of [SIGNATURES!, ATTESTATIONS!])
    row[list] = Buffer.from(toWireFormats(redactDetails(String(row[list])), names))
  return plainRow(AttestationResult, row)
}
