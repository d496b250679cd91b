/** Which payloads answer for a digest, and what is told of them (interop-supply-chain 3.1). */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { fromRow } from '../records/index.ts'
import { SOURCES, toWireSource, type WireNames } from '../wire-names/index.ts'

const SBOM_TRUSTS = ['attached-unbound', 'unverified', 'scanned', 'verified'] as const
const JOINS = ['image_id', 'platform_manifest', 'workload_tag', 'report_digest'] as const

/** Through what an SBOM was found in a registry; the names are those in which it was posted. */
const SbomAttestation = z
  .strictObject({
    mechanism: z.string().nullable(),
    artifact_digest: z.string().nullable(),
    media_type: z.string().nullable(),
    predicate_type: z.string().nullable(),
    verified: z.boolean(),
  })
  .meta({ id: 'SbomAttestation' })

/** What is known of a payload of findings or of an SBOM, and how it was joined to the image. */
export const Report = z
  .strictObject({
    source: z.string(),
    reportDigest: digestText,
    join: z.enum(JOINS),
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

/** Payloads of one source that answer side by side, one a platform (`max_platform_reports`), and of all sources. */
export const MAX_PLATFORM_REPORTS = 64
export const MAX_REPORTS = SOURCES.length * MAX_PLATFORM_REPORTS

type Kind = 'vulnerabilities' | 'sbom'

/** The payloads that answer: `digest`, `source` and `join_rank`. `asked` and `source` are expressions; a null source is any. */
export const answering = (kind: Kind, asked: string, source = 'null') => `
  select e.digest, e.source, e.join_rank
  from answering_reports(${asked}, '${kind}') e
  where e.source = coalesce(${source}, e.source)`

/** The reports of those payloads, of the relation `payloads`, as one JSON array for `readReports`. */
export const reportList = (kind: Kind, payloads: string, order: string) => `
  (select json_agg(r)
   from (select e.source, e.digest as report_digest, join_name(e.join_rank) as "join", r.digest_kind, r.scanned_at, r.db_updated_at,
                r.scanner_name, r.scanner_version, r.os_family, r.os_name, r.os_eosl, r.image_ref, r.item_count, r.sbom_format,
                r.received_at, r.sbom_sources, r.sbom_trust, r.attestation
         from ${payloads} e
         join image_report r on r.digest = e.digest and r.source = e.source and r.kind = '${kind}'
         order by ${order}) r)::text`

/** A guess by tag that no longer answers, since some report has the image by its digest. */
export const RetiredGuess = z
  .strictObject({ source: z.string(), reportDigest: digestText, repository: z.string(), tag: z.string() })
  .meta({ id: 'RetiredGuess' })
type RetiredGuess = z.output<typeof RetiredGuess>

/** As answers have them: of a source that answers there is none. */
export const retiredGuesses = z
  .array(RetiredGuess)
  .max(SOURCES.length)
  .describe(
    'Reports by the tag of the image, of sources that have none of its digest. They no longer answer: the tag may have moved.',
  )

/** The retired guesses of a digest as one JSON array for `readGuesses`; of the relation `payloads` are those that answer. */
export const guessList = (kind: Kind, asked: string, payloads: string, source = 'null') => `
  (select json_agg(g order by g.source)
   from retired_guesses(${asked}, '${kind}') g
   where g.source = coalesce(${source}, g.source) and g.source <> all (array(select p.source from ${payloads} p)))::text`

/** The guesses of a `guessList`, with the names of answers. */
export const readGuesses = (json: Buffer | null, names: WireNames): RetiredGuess[] =>
  (JSON.parse(json?.toString() ?? '[]') as Omit<RetiredGuess & { digest: string }, 'reportDigest'>[]).map(
    ({ source, digest, repository, tag }) => ({
      source: toWireSource(source, names),
      reportDigest: digest,
      repository,
      tag,
    }),
  )

/** The reports of a `reportList`, in the form and with the names of answers. */
export function readReports(json: Buffer | null, names: WireNames): Report[] {
  const rows = JSON.parse(json?.toString() ?? '[]') as Record<string, unknown>[]
  return rows.map((row) => {
    const report = fromRow(Report, row) as Report
    report.source = toWireSource(report.source, names)
    report.sbomSources = report.sbomSources.map((source) => toWireSource(source, names))
    report.attestation = attestationOf(report.attestation)
    return report
  })
}

/** All keys in the order of the wire, which the database does not keep. */
function attestationOf(stored: Partial<NonNullable<Report['attestation']>> | null): Report['attestation'] {
  if (stored === null) return null
  const {
    mechanism = null,
    artifact_digest = null,
    media_type = null,
    predicate_type = null,
    verified = false,
  } = stored
  return { mechanism, artifact_digest, media_type, predicate_type, verified }
}
