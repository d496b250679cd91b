/** The list of results, each with a summary that fits a line (docs/contract.md#signatures-and-attestations). */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { storedJson } from '../records/column-kinds.ts'
import { plainColumns, plainRows } from '../records/index.ts'
import { truncateToBytes } from '../text/utf8.ts'
import { SIGNER_KINDS, type SignatureVerdict, VERDICTS, verdict } from './entry.ts'
import { reason } from './stored-result.ts'
import { MAX_SUMMARY_BYTES } from './summary.ts'

export const Signer = z
  .strictObject({
    kind: z.enum(SIGNER_KINDS),
    issuer: z.string().optional(),
    san: z.string().optional(),
    keyName: z.string().optional(),
    keyFingerprint: z.string().optional(),
  })
  .meta({ id: 'Signer' })

const AttestationSummary = z
  .strictObject({
    digest: digestText,
    repository: z.string(),
    verdict,
    reason,
    signedVia: z.string().nullable(),
    signers: storedJson(
      z.array(Signer).describe('Signers of the signatures that verified: at most 8, without repeats.'),
    ),
    verifiedPredicates: storedJson(
      z.array(z.string()).describe('Predicate types of the attestations that verified: at most 16, without repeats.'),
    ),
    checkedAt: wireTime,
  })
  .meta({
    id: 'AttestationSummary',
    description:
      `Repository, issuers, alternative names and predicate types are cut to ${MAX_SUMMARY_BYTES} bytes; ` +
      'the result of the digest has them whole.',
  })

/** A page of GET /attestations. */
export const AttestationPage = z
  .strictObject({
    items: z.array(AttestationSummary),
    nextAfter: digestText.nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'AttestationPage' })

const KEYS = Object.keys(AttestationSummary.shape)
const [DIGEST, REPOSITORY] = ['digest', 'repository'].map((key) => KEYS.indexOf(key)) as [number, number]

const columns = plainColumns(AttestationSummary, 'a')

const ALL = fixed(
  `select ${columns} from image_attestation a where a.digest > $1 and a.checked_at >= retention_start($2::integer) ` +
    'order by a.digest limit $3',
)

const BY_BOTH = fixed(`
  select ${columns}
  from image_attestation a
  where a.repository = $1 and a.verdict = $2 and a.digest > $3 and a.checked_at >= retention_start($4::integer)
  order by a.digest
  limit $5`)

// A row comparison, because "=" lets the planner walk through all digests to find those of one verdict.
const BY_VERDICT = fixed(`
  with params as materialized (
    select $1::text as verdict, $2::text as digest, retention_start($3::integer) as retention_start, $4::integer as max)
  select ${columns}
  from params, image_attestation a
  where (a.verdict, a.digest) > (params.verdict, params.digest) and a.verdict <= params.verdict
    and a.checked_at >= (select retention_start from params)
  order by a.verdict, a.digest
  limit (select max from params)`)

// The index has the verdict before the digest. One page is read for each verdict, so that this index serves both
// filters.
const ofVerdict = (verdict: SignatureVerdict) => `
      (select a.*
       from params, image_attestation a
       where a.repository = params.repository and a.verdict = '${verdict}' and a.digest > params.digest
         and a.checked_at >= params.retention_start
       order by a.digest
       limit (select max from params))`
const BY_REPOSITORY = fixed(`
  with params as materialized (
    select $1::text as repository, $2::text as digest, retention_start($3::integer) as retention_start,
           $4::integer as max)
  select ${columns}
  from (${VERDICTS.map(ofVerdict).join(' union all ')}) a
  order by a.digest
  limit (select max from params)`)

interface AttestationFilter {
  /** Null for any. */
  readonly verdict: SignatureVerdict | null
  /** The whole name; null for any. */
  readonly repository: string | null
  /** Days that a result is kept after its check; 0 for ever. */
  readonly retentionDays: number
}

/** Returns a page of results by digest, as JSON; `after` is a digest, or empty. */
export async function readSummaries(
  gate: Gate,
  { verdict, repository, retentionDays: days }: AttestationFilter,
  { limit, after }: { limit: number; after: string },
): Promise<Buffer> {
  const max = limit + 1
  const rows = await gate((sql) => {
    if (repository !== null && verdict !== null) return BY_BOTH(sql, repository, verdict, after, days, max).raw()
    if (repository !== null) return BY_REPOSITORY(sql, repository, after, days, max).raw()
    return verdict === null ? ALL(sql, after, days, max).raw() : BY_VERDICT(sql, verdict, after, days, max).raw()
  })
  const items = rows.slice(0, limit)
  // Texts inside the lists were cut when they were stored.
  for (const item of items) item[REPOSITORY] = Buffer.from(truncateToBytes(String(item[REPOSITORY]), MAX_SUMMARY_BYTES))
  const nextAfter = rows.length > limit ? String(items.at(-1)![DIGEST]) : null
  return Buffer.concat([
    Buffer.from('{"items":['),
    plainRows(AttestationSummary, items),
    Buffer.from(`],"nextAfter":${JSON.stringify(nextAfter)}}`),
  ])
}
