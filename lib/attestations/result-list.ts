/** The list of results, with of each what a line can show (supply-chain, Attestation summary item; interop-supply-chain 3.7). */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { storedJson } from '../records/column-kinds.ts'
import { plainColumns, plainRows } from '../records/index.ts'
import { truncateToBytes } from '../text/utf8.ts'
import { SIGNER_KINDS, VERDICTS, type Verdict, verdict } from './entry.ts'
import { reason } from './stored-result.ts'
import { MAX_SUMMARY_BYTES } from './summary.ts'

const Signer = z
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
    signers: storedJson(z.array(Signer).describe('Who made the signatures that verified: at most 8, each once.')),
    verifiedPredicates: storedJson(
      z.array(z.string()).describe('The types of the attestations that verified: at most 16, each once.'),
    ),
    checkedAt: wireTime,
  })
  .meta({
    id: 'AttestationSummary',
    description: `Repository, issuers, alternative names and predicate types are cut to ${MAX_SUMMARY_BYTES} bytes; the result of the digest has them whole.`,
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
  `select ${columns} from image_attestation a where a.digest > $1 and a.checked_at >= retention_start($2::integer) order by a.digest limit $3`,
)

const BY_BOTH = fixed(`
  select ${columns}
  from image_attestation a
  where a.repository = $1 and a.verdict = $2 and a.digest > $3 and a.checked_at >= retention_start($4::integer)
  order by a.digest
  limit $5`)

// "=" would let the planner walk through all digests for those of a verdict.
const BY_VERDICT = fixed(`
  with asked as materialized (select $1::text as verdict, $2::text as digest, retention_start($3::integer) as retention_start, $4::integer as max)
  select ${columns}
  from asked, image_attestation a
  where (a.verdict, a.digest) > (asked.verdict, asked.digest) and a.verdict <= asked.verdict
    and a.checked_at >= (select retention_start from asked)
  order by a.verdict, a.digest
  limit (select max from asked)`)

// The index has the verdict before the digest, so that it serves both: of each verdict a page is read.
const ofVerdict = (verdict: Verdict) => `
      (select a.*
       from asked, image_attestation a
       where a.repository = asked.repository and a.verdict = '${verdict}' and a.digest > asked.digest and a.checked_at >= asked.retention_start
       order by a.digest
       limit (select max from asked))`
const BY_REPOSITORY = fixed(`
  with asked as materialized (select $1::text as repository, $2::text as digest, retention_start($3::integer) as retention_start, $4::integer as max)
  select ${columns}
  from (${VERDICTS.map(ofVerdict).join(' union all ')}) a
  order by a.digest
  limit (select max from asked)`)

interface AttestationFilter {
  /** Null for any. */
  readonly verdict: Verdict | null
  /** The whole name; null for any. */
  readonly repository: string | null
  /** Days that a result is kept after it was checked; 0 for ever. */
  readonly retentionDays: number
}

/** A page of results in the order of the digests, as JSON; `after` is a digest, or empty. */
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
  // Texts within lists were cut when they were stored.
  for (const item of items) item[REPOSITORY] = Buffer.from(truncateToBytes(String(item[REPOSITORY]), MAX_SUMMARY_BYTES))
  const nextAfter = rows.length > limit ? String(items.at(-1)![DIGEST]) : null
  return Buffer.concat([
    Buffer.from('{"items":['),
    plainRows(AttestationSummary, items),
    Buffer.from(`],"nextAfter":${JSON.stringify(nextAfter)}}`),
  ])
}
