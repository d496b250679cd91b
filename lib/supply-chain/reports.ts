/** The payloads that answer for a digest, and the report about each (docs/contract.md#joins). */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { fromRow, type RawRow } from '../records/index.ts'
import { SOURCES, toWireSource, type WireNames } from '../wire-names/index.ts'
import type { ReportKind } from './payload.ts'

const SBOM_TRUSTS = ['attached-unbound', 'unverified', 'scanned', 'verified'] as const
const IMAGE_JOINS = ['image_id', 'platform_manifest', 'workload_tag'] as const

/** How a report was joined to an image of the inventory. */
export const imageJoin = z.enum(IMAGE_JOINS)

/** How an SBOM was found in a registry; keys have the names in which it was posted. */
const SbomAttestation = z
  .strictObject({
    mechanism: z.string().nullable(),
    artifact_digest: z.string().nullable(),
    media_type: z.string().nullable(),
    predicate_type: z.string().nullable(),
    verified: z.boolean(),
  })
  .meta({ id: 'SbomAttestation' })

/** The header of a payload of findings or of an SBOM, and how it was joined to the image. */
export const Report = z
  .strictObject({
    source: z.string(),
    reportDigest: digestText,
    join: z.enum([...IMAGE_JOINS, 'report_digest']),
    digestKind: z.enum(['index', 'manifest', 'unknown']),
    scannedAt: wireTime,
    dbUpdatedAt: wireTime.nullable(),
    scannerName: z.string().nullable(),
    scannerVersion: z.string().nullable(),
    osFamily: z.string().nullable(),
    osName: z.string().nullable(),
    osEosl: z.boolean(),
    imageRef: z.string().nullable(),
    itemCount: z.int().min(0),
    sbomFormat: z.string().nullable(),
    receivedAt: wireTime,
    sbomSources: z.array(z.string()),
    sbomTrust: z.enum(SBOM_TRUSTS).nullable(),
    attestation: SbomAttestation.nullable(),
  })
  .meta({ id: 'SupplyChainReport' })
export type Report = z.output<typeof Report>

/**
 * Payloads of one source that answer side by side, one for each platform (`max_platform_reports` in SQL), and of all
 * sources.
 */
export const MAX_PLATFORM_REPORTS = 64
const MAX_REPORTS = SOURCES.length * MAX_PLATFORM_REPORTS

/**
 * SQL: the payloads that answer, as `digest`, `source` and `join_rank`. `digest` and `source` are expressions; a null
 * source is any.
 */
export const answering = (kind: ReportKind, digest: string, source = 'null') => `
  select e.digest, e.source, e.join_rank
  from answering_reports(${digest}, '${kind}') e
  where e.source = coalesce(${source}, e.source)`

/** SQL: the reports of the relation `payloads` as one JSON array, for `readReports`. */
export const reportList = (kind: ReportKind, payloads: string, order: string) => `
  (select json_agg(r)
   from (select e.source, e.digest as report_digest, join_name(e.join_rank) as "join", r.digest_kind, r.scanned_at,
                r.db_updated_at, r.scanner_name, r.scanner_version, r.os_family, r.os_name, r.os_eosl, r.image_ref,
                r.item_count, r.sbom_format, r.received_at, r.sbom_sources, r.sbom_trust, r.attestation
         from ${payloads} e
         join image_report r on r.digest = e.digest and r.source = e.source and r.kind = '${kind}'
         order by ${order}) r)::text`

/** A guess by tag that no longer answers, since a report has the image by its digest (docs/contract.md#joins). */
const RetiredGuess = z
  .strictObject({ source: z.string(), reportDigest: digestText, repository: z.string(), tag: z.string() })
  .meta({ id: 'RetiredGuess' })

/** A source that answers has none. */
const retiredGuesses = z
  .array(RetiredGuess)
  .max(SOURCES.length)
  .describe(
    'Reports found by the tag of the image, from sources that have none for its digest. They no longer answer, ' +
      'since the tag may have moved.',
  )

/** The first fields of an answer about an image; `reports` describes them. */
export const answeringFields = (reports: string) => ({
  digest: digestText,
  reports: z.array(Report).max(MAX_REPORTS).describe(reports),
  retiredGuesses,
})

/**
 * SQL: the reports of the relation `payloads`, and the retired guesses of a digest and source, which are expressions,
 * as one JSON array each, for `readAnswering`. Only the first row of the relation `rows`, which may be empty, has them.
 */
export const answeringColumns = (
  kind: ReportKind,
  payloads: { readonly from: string; readonly order: string },
  { rows, digest, source = 'null' }: { readonly rows: string; readonly digest: string; readonly source?: string },
) => `
  case when ${rows}.n is null or ${rows}.n = 1 then ${reportList(kind, payloads.from, payloads.order)} end,
  case when ${rows}.n is null or ${rows}.n = 1 then (
    select json_agg(g order by g.source)
    from (select g.source, g.digest as report_digest, g.repository, g.tag
          from retired_guesses(${digest}, '${kind}') g
          where g.source = coalesce(${source}, g.source)
            and g.source <> all (array(select p.source from ${payloads.from} p))) g)::text end`

/** Reads the `answeringColumns` of a row. */
export const readAnswering = ([reports, guesses]: RawRow, names: WireNames) => ({
  reports: readReports(reports!, names),
  retiredGuesses: readList(RetiredGuess, guesses!, names),
})

/** Parses a `reportList`, with the keys and names of sources that answers use. */
export const readReports = (json: Buffer | null, names: WireNames): Report[] =>
  readList(Report, json, names).map((report) => ({
    ...report,
    sbomSources: report.sbomSources.map((source) => toWireSource(source, names)),
    // The keys in wire order: jsonb does not keep it.
    attestation: report.attestation && { ...NO_ATTESTATION, ...report.attestation },
  }))

const NO_ATTESTATION = {
  mechanism: null,
  artifact_digest: null,
  media_type: null,
  predicate_type: null,
  verified: false,
}

const readList = <R extends typeof Report | typeof RetiredGuess>(record: R, json: Buffer | null, names: WireNames) =>
  (JSON.parse(json?.toString() ?? '[]') as Record<string, unknown>[]).map((row) => {
    const read = fromRow(record, row) as z.output<R>
    return { ...read, source: toWireSource(read.source, names) }
  })
