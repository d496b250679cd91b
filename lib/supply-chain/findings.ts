/** The payload of POST /images/{digest}/vulnerabilities: how it may look, and what is kept of it (interop-supply-chain 1.2). */
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { listOf, recordOf } from '../http/lists.ts'
import { firstOf, optionalInstant, optionalNumber, optionalText, real, requiredText, share } from './fields.ts'
import { checkContract, HeaderShape, sharedHeader, statedTrust } from './header.ts'
import { type Source, sourceNamed } from './names.ts'
import type { PayloadKind } from './payload.ts'
import { RowHash } from './row-hash.ts'
import { clean, cleanDistinct } from './text.ts'

export const MAX_FINDINGS = 20_000

const MAX_VENDORS = 8
const MAX_FILE_PATHS = 16
const MAX_SBOM_SOURCES = 8
/** Of one finding that a payload repeats; scanners repeat it once for each target that has it. */
const MAX_FIXED_VERSIONS = 32

/** Bytes that are kept of texts. */
const MAX_ID_BYTES = 128
const MAX_NAME_BYTES = 256
const MAX_VERSION_BYTES = 128
const MAX_WORD_BYTES = 64
const MAX_URL_BYTES = 1024
const MAX_TEXT_BYTES = 512
const MAX_VECTOR_BYTES = 128
const MAX_V40_VECTOR_BYTES = 512

const PostedScores = z
  .object({
    v2_score: optionalNumber,
    v2_vector: optionalText(MAX_VECTOR_BYTES),
    v3_score: optionalNumber,
    v3_vector: optionalText(MAX_VECTOR_BYTES),
    v40_score: optionalNumber,
    v40_vector: optionalText(MAX_V40_VECTOR_BYTES),
  })
  .meta({ id: 'PostedScores' })

export const PostedFinding = z
  .object({
    id: requiredText(MAX_ID_BYTES),
    package: z
      .object({
        name: requiredText(MAX_NAME_BYTES),
        version: optionalText(MAX_VERSION_BYTES),
        type: optionalText(MAX_WORD_BYTES),
        purl: optionalText(MAX_URL_BYTES),
      })
      .meta({ id: 'PostedPackage' }),
    fixed_version: optionalText(MAX_TEXT_BYTES),
    severity: z.string().nullish().describe('`CRITICAL`, `HIGH`, `MEDIUM`, `LOW` or `NONE`, in any case; anything else is `UNKNOWN`.'),
    score: optionalNumber,
    cvss: recordOf(PostedScores.nullable()).nullish().describe(`By who scored it. The first ${MAX_VENDORS} are kept.`),
    title: optionalText(MAX_TEXT_BYTES),
    primary_url: optionalText(MAX_URL_BYTES),
    target: optionalText(MAX_TEXT_BYTES),
    class: optionalText(MAX_WORD_BYTES),
    published_at: optionalInstant,
    last_modified_at: optionalInstant,
    file_paths: firstOf(z.string(), MAX_FILE_PATHS),
    kev: z.boolean().nullish(),
    kev_date_added: optionalInstant,
    epss: optionalNumber.describe('What is not within 0 and 1 is absent.'),
    epss_percentile: optionalNumber.describe('Likewise.'),
  })
  .meta({ id: 'PostedFinding' })

const namesOfSources = z.union([z.string(), z.array(z.string())]).nullish()

export const PostedFindings = z
  .object({
    ...HeaderShape,
    os: z
      .object({ family: optionalText(MAX_WORD_BYTES), name: optionalText(MAX_WORD_BYTES), eosl: z.boolean().nullish() })
      .meta({ id: 'PostedOs' })
      .nullish(),
    db_updated_at: optionalInstant,
    sbom_sources: namesOfSources.describe(`Of the first ${MAX_SBOM_SOURCES} those are kept that are known.`),
    sbom_source: namesOfSources.describe('An older name of `sbom_sources`.'),
    vulnerabilities: listOf(PostedFinding, MAX_FINDINGS).nullish(),
  })
  .meta({ id: 'PostedFindings' })

type Finding = z.output<typeof PostedFinding>

/** The most severe first: a smaller number is worse. */
const SEVERITIES = new Map([
  ['CRITICAL', 0],
  ['HIGH', 1],
  ['MEDIUM', 2],
  ['LOW', 3],
  ['NONE', 4],
])
const UNKNOWN_SEVERITY = 5

/** A finding as it is stored; what is not known is undefined. */
export interface FindingRow {
  severity: number
  readonly vuln_id: string
  readonly package_name: string
  readonly installed_version: string
  package_type: string | undefined
  package_purl: string | undefined
  fixed_versions: readonly string[]
  score: number | undefined
  cvss: Readonly<Record<string, Readonly<Record<string, string | number>>>>
  title: string | undefined
  primary_url: string | undefined
  target: string | undefined
  class: string | undefined
  published_at: string | undefined
  last_modified_at: string | undefined
  file_paths: readonly string[]
  kev: boolean | undefined
  kev_date_added: string | undefined
  epss: number | undefined
  epss_percentile: number | undefined
}

/** The row of a finding. 422 without an id or the name of a package; `where` is its place in the payload. */
export function findingRow(posted: Finding, where: string): FindingRow {
  const vuln_id = clean(posted.id, MAX_ID_BYTES)
  if (vuln_id === undefined) throw new HttpError(422, `${where}.id: expected text`)
  const package_name = clean(posted.package.name, MAX_NAME_BYTES)
  if (package_name === undefined) throw new HttpError(422, `${where}.package.name: expected text`)
  const fixedVersion = clean(posted.fixed_version, MAX_TEXT_BYTES)
  return {
    severity: SEVERITIES.get(posted.severity?.trim().toUpperCase() ?? '') ?? UNKNOWN_SEVERITY,
    vuln_id,
    package_name,
    installed_version: clean(posted.package.version, MAX_VERSION_BYTES) ?? '',
    package_type: clean(posted.package.type, MAX_WORD_BYTES),
    package_purl: clean(posted.package.purl, MAX_URL_BYTES),
    fixed_versions: fixedVersion === undefined ? [] : [fixedVersion],
    score: real(posted.score),
    cvss: scoresByVendor(posted.cvss),
    title: clean(posted.title, MAX_TEXT_BYTES),
    primary_url: clean(posted.primary_url, MAX_URL_BYTES),
    target: clean(posted.target, MAX_TEXT_BYTES),
    class: clean(posted.class, MAX_WORD_BYTES),
    published_at: posted.published_at ?? undefined,
    last_modified_at: posted.last_modified_at ?? undefined,
    file_paths: cleanDistinct(posted.file_paths, MAX_FILE_PATHS, MAX_URL_BYTES),
    kev: posted.kev ?? undefined,
    kev_date_added: posted.kev_date_added ?? undefined,
    epss: share(posted.epss),
    epss_percentile: share(posted.epss_percentile),
  }
}

function scoresByVendor(posted: Finding['cvss']): FindingRow['cvss'] {
  if (!posted) return {}
  const kept = new Map<string, Record<string, string | number>>()
  for (const [vendor, scores] of Object.entries(posted).slice(0, MAX_VENDORS)) {
    const name = clean(vendor, MAX_WORD_BYTES)
    if (name !== undefined && scores !== null && !kept.has(name)) kept.set(name, knownScores(scores))
  }
  return Object.fromEntries(kept)
}

function knownScores(posted: z.output<typeof PostedScores>): Record<string, string | number> {
  const scores = {
    v2_score: finite(posted.v2_score),
    v2_vector: clean(posted.v2_vector, MAX_VECTOR_BYTES),
    v3_score: finite(posted.v3_score),
    v3_vector: clean(posted.v3_vector, MAX_VECTOR_BYTES),
    v40_score: finite(posted.v40_score),
    v40_vector: clean(posted.v40_vector, MAX_V40_VECTOR_BYTES),
  }
  return Object.fromEntries(Object.entries(scores).filter((one): one is [string, string | number] => one[1] !== undefined))
}

const finite = (score: number | null | undefined) => (Number.isFinite(score) ? score! : undefined)

const DESCRIPTIVE = ['package_type', 'package_purl', 'title', 'primary_url', 'target', 'class', 'published_at', 'last_modified_at'] as const

/**
 * Takes what a later row of the same payload says of the same finding into the row: the worst severity, the highest scores, every fix, and
 * of what describes it that which was told first.
 */
export function merge(row: FindingRow, later: FindingRow): void {
  row.severity = Math.min(row.severity, later.severity)
  row.score = highest(row.score, later.score)
  row.fixed_versions = [...new Set([...row.fixed_versions, ...later.fixed_versions])].slice(0, MAX_FIXED_VERSIONS)
  // The order is that of who was named first, the value that of the row.
  row.cvss = Object.fromEntries(Object.entries({ ...row.cvss, ...later.cvss, ...row.cvss }).slice(0, MAX_VENDORS))
  for (const key of DESCRIPTIVE) row[key] ??= later[key]
  if (row.file_paths.length === 0) row.file_paths = later.file_paths
  row.kev = row.kev || later.kev || (row.kev ?? later.kev)
  row.kev_date_added = earliest(row.kev_date_added, later.kev_date_added)
  row.epss = highest(row.epss, later.epss)
  row.epss_percentile = highest(row.epss_percentile, later.epss_percentile)
}

const highest = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)

// Text in its canonical form is in the order of time.
const earliest = (one: string | undefined, other: string | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : one < other ? one : other

/** The rows of a payload: as JSON until one is repeated, which few are. */
class FindingRows {
  readonly #rows = new Map<string, string | FindingRow>()
  readonly #hash = new RowHash()

  add(posted: Finding, where: string): void {
    const row = findingRow(posted, where)
    const json = JSON.stringify(row)
    this.#hash.add(json)
    // No text holds U+0000.
    const key = `${row.vuln_id}\0${row.package_name}\0${row.installed_version}`
    const known = this.#rows.get(key)
    if (known === undefined) {
      this.#rows.set(key, json)
      return
    }
    const first = typeof known === 'string' ? (JSON.parse(known) as FindingRow) : known
    merge(first, row)
    this.#rows.set(key, first)
  }

  finish() {
    const rows = [...this.#rows.values()].map((row) => (typeof row === 'string' ? row : JSON.stringify(row)))
    return { rows: `[${rows.join(',')}]`, hash: this.#hash.digest() }
  }
}

function knownSources({ sbom_sources, sbom_source }: z.output<typeof PostedFindings>): Source[] {
  const named = sbom_sources ?? sbom_source ?? []
  const first = (typeof named === 'string' ? [named] : named).slice(0, MAX_SBOM_SOURCES)
  const known = first.map((name) => sourceNamed(name.trim())).filter((source) => source !== undefined)
  return [...new Set(known)].sort()
}

export const findings: PayloadKind<typeof PostedFindings, typeof PostedFinding> = {
  schema: PostedFindings,
  listKey: 'vulnerabilities',
  element: PostedFinding,
  maxElements: MAX_FINDINGS,
  createRows: () => new FindingRows(),
  finish: (posted, { digest, now, itemCount, rows }) => {
    const source = checkContract(posted, digest, now)
    const { rows: json, hash } = rows()
    return {
      header: {
        ...sharedHeader(posted),
        source,
        db_updated_at: posted.db_updated_at ?? null,
        os_family: clean(posted.os?.family, MAX_WORD_BYTES) ?? null,
        os_name: clean(posted.os?.name, MAX_WORD_BYTES) ?? null,
        os_eosl: posted.os?.eosl ?? false,
        content_hash: hash,
        item_count: itemCount,
        sbom_format: null,
        sbom_spec_version: null,
        sbom_sources: knownSources(posted),
        sbom_trust: statedTrust(posted) ?? null,
        attestation: null,
      },
      page: null,
      rows: json,
    }
  },
}
