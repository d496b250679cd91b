/** The result of checking one image (docs/contract.md#signatures-and-attestations). */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { storedJson } from '../records/column-kinds.ts'
import { plainColumns, plainRow } from '../records/index.ts'
import { toWireFormats, type WireNames } from '../wire-names/index.ts'
import { Attestation, Signature, verdict } from './entry.ts'
import { redactDetails } from './redact.ts'

/** The reason of a verdict, in every answer about it. */
export const reason = z
  .string()
  .nullable()
  .describe('A code that says why the verdict is not better; null without one.')

/** GET /images/{digest}/attestation. */
export const AttestationResult = z
  .strictObject({
    digest: digestText,
    repository: z.string(),
    verdict,
    reason,
    trustRoot: z.string().nullable().describe('The trust root that signatures were verified with.'),
    signedVia: z
      .string()
      .nullable()
      .describe('`self`, or `index` if the signature is on the multi-platform index that lists the digest.'),
    signedDigest: z.string().nullable().describe('The digest of that index.'),
    signatures: storedJson(z.array(Signature)),
    attestations: storedJson(z.array(Attestation)),
    checkedAt: wireTime,
    receivedAt: wireTime,
  })
  .meta({ id: 'AttestationResult' })

const RESULT = fixed(
  `select ${plainColumns(AttestationResult, 'a')} from image_attestation a where a.digest = $1 and a.checked_at >= ` +
    'retention_start($2::integer)',
)
const [SIGNATURES, ATTESTATIONS] = ['signatures', 'attestations'].map((key) =>
  Object.keys(AttestationResult.shape).indexOf(key),
)

/**
 * Returns the result of a digest as JSON, or null if none was checked within the retention time. Its lists are the
 * stored text, so integers stay exact. Each `detail` is redacted again, since an earlier version may have stored more
 * of it.
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
