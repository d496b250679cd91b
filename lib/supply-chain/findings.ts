/**
 * The payload of POST /images/{digest}/vulnerabilities: its schema, and the rows made from it
 * (docs/contract.md#findings).
 */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { listOf, recordOf } from '../http/request/first-fault.ts'
import { type Source, sourceNamed } from '../wire-names/index.ts'
import { canonicalId } from './advisory.ts'
import {
  countUnreadable,
  firstOf,
  optional,
  optionalFlag,
  optionalInstant,
  optionalNumber,
  optionalText,
  real,
  requiredText,
  share,
} from './fields.ts'
import { checkContract, HeaderShape, sharedHeader, statedTrust } from './header.ts'
import type { PayloadKind } from './payload.ts'
import { RowHash } from './row-hash.ts'
import { severityNumber } from './severity.ts'
import { clean, cleanDistinct } from './text.ts'

export const MAX_FINDINGS = 20_000

const MAX_VENDORS = 8
const MAX_FILE_PATHS = 16
const MAX_SBOM_SOURCES = 8
const MAX_ALIASES = 32
/** Limits of a finding that a payload repeats: scanners list it once for each file or target that has it. */
const MAX_MERGED_FIXED_VERSIONS = 256
const MAX_MERGED_FILE_PATHS = 1_024

/** Longest stored texts, in bytes. */
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
    aliases: firstOf(z.string(), MAX_ALIASES).describe(
      `Other ids of the same vulnerability, as \`GHSA-...\` beside \`CVE-...\`. The first ${MAX_ALIASES} are kept. ` +
        'A finding is stored by its CVE, where id and aliases have one of them.',
    ),
    package: z
      .object({
        name: requiredText(MAX_NAME_BYTES),
        version: optionalText(MAX_VERSION_BYTES),
        type: optionalText(MAX_WORD_BYTES),
        purl: optionalText(MAX_URL_BYTES),
      })
      .meta({ id: 'PostedPackage' }),
    fixed_version: optionalText(MAX_TEXT_BYTES),
    severity: z
      .string()
      .nullish()
      .describe(
        '`CRITICAL`, `HIGH`, `MEDIUM`, `LOW` or `NONE`, in any case; `important` is `HIGH`, `moderate` `MEDIUM`, ' +
          '`negligible` and `unimportant` `NONE`; anything else is `UNKNOWN`, whatever the score.',
      ),
    score: optionalNumber,
    cvss: optional(recordOf(optional(PostedScores))).describe(
      `By scoring provider. The first ${MAX_VENDORS} are kept.`,
    ),
    title: optionalText(MAX_TEXT_BYTES),
    primary_url: optionalText(MAX_URL_BYTES),
    target: optionalText(MAX_TEXT_BYTES),
    class: optionalText(MAX_WORD_BYTES),
    published_at: optionalInstant,
    last_modified_at: optionalInstant,
    file_paths: firstOf(z.string(), MAX_FILE_PATHS),
    kev: optionalFlag,
    kev_date_added: optionalInstant,
    epss: optionalNumber.describe('A number outside 0 to 1 is absent.'),
    epss_percentile: optionalNumber.describe('A number outside 0 to 1 is absent.'),
  })
  .meta({ id: 'PostedFinding' })

const namesOfSources = z.union([z.string(), z.array(z.string())]).nullish()

export const PostedFindings = z
  .object({
    ...HeaderShape,
    os: optional(
      z
        .object({ family: optionalText(MAX_WORD_BYTES), name: optionalText(MAX_WORD_BYTES), eosl: optionalFlag })
        .meta({ id: 'PostedOs' }),
    ),
    db_updated_at: optionalInstant,
    sbom_sources: namesOfSources.describe(`Unknown names are dropped, and all after the first ${MAX_SBOM_SOURCES}.`),
    sbom_source: namesOfSources.describe('An older name of `sbom_sources`.'),
    vulnerabilities: listOf(PostedFinding, MAX_FINDINGS).nullish(),
  })
  .meta({ id: 'PostedFindings' })

type Finding = z.output<typeof PostedFinding>

/** A finding as it is stored. Unknown values are undefined. */
export interface FindingRow {
  severity: number
  /** The canonical id (`canonicalId`). */
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
  // JSON leaves undefined keys out, so a payload without these two has the same hash as before they existed.
  /** Other ids of the same vulnerability. */
  aliases: readonly string[] | undefined
  /** Number of aliases, fixed versions and file paths that were cut; never 0. */
  omitted: number | undefined
}

/** Returns the row of a finding; `where` is its position in the payload. 422 without an id or a package name. */
export function findingRow(posted: Finding, where: string): FindingRow {
  const id = clean(posted.id, MAX_ID_BYTES)
  if (id === undefined) throw new HttpError(422, `${where}.id: expected text`)
  const package_name = clean(posted.package.name, MAX_NAME_BYTES)
  if (package_name === undefined) throw new HttpError(422, `${where}.package.name: expected text`)
  const fixedVersion = clean(posted.fixed_version, MAX_TEXT_BYTES)
  const { vuln_id, aliases } = canonicalId(id, cleanDistinct(posted.aliases, MAX_ALIASES, MAX_ID_BYTES))
  const omitted = beyond(posted.aliases, MAX_ALIASES) + beyond(posted.file_paths, MAX_FILE_PATHS)
  return {
    severity: severityNumber(posted.severity),
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
    published_at: posted.published_at || undefined,
    last_modified_at: posted.last_modified_at || undefined,
    file_paths: cleanDistinct(posted.file_paths, MAX_FILE_PATHS, MAX_URL_BYTES),
    kev: posted.kev ?? undefined,
    kev_date_added: posted.kev_date_added || undefined,
    epss: share(posted.epss),
    epss_percentile: share(posted.epss_percentile),
    aliases: aliases.length > 0 ? aliases : undefined,
    omitted: omitted || undefined,
  }
}

/** Returns how many entries of a list exceed its limit. */
const beyond = (list: readonly string[] | null | undefined, max: number) => Math.max(0, (list?.length ?? 0) - max)

function scoresByVendor(posted: Finding['cvss']): FindingRow['cvss'] {
  if (!posted) return {}
  const byVendor = new Map<string, Record<string, string | number>>()
  for (const [vendor, scores] of Object.entries(posted).slice(0, MAX_VENDORS)) {
    const name = clean(vendor, MAX_WORD_BYTES)
    if (name !== undefined && scores && !byVendor.has(name)) byVendor.set(name, knownScores(scores))
  }
  return Object.fromEntries(byVendor)
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
  return Object.fromEntries(
    Object.entries(scores).filter((one): one is [string, string | number] => one[1] !== undefined),
  )
}

const finite = (score: number | null | undefined) => (Number.isFinite(score) ? score! : undefined)

const DESCRIPTIVE = [
  'package_type',
  'package_purl',
  'title',
  'primary_url',
  'target',
  'class',
  'published_at',
  'last_modified_at',
] as const

/** Distinct texts in first-seen order, up to a limit, and a count of the rest. */
class BoundedUnion {
  readonly #texts = new Map<string, string>()
  readonly #max: number
  readonly #keyOf: (text: string) => string
  #cut = 0

  /** Texts with the same key count as the same text. */
  constructor(max: number, keyOf = (text: string) => text) {
    this.#max = max
    this.#keyOf = keyOf
  }

  /**
   * Texts beyond the limit. Repeats among them are counted again: telling them apart would take the memory of keeping
   * them.
   */
  get cut(): number {
    return this.#cut
  }

  add(texts: readonly string[]): void {
    for (const text of texts) {
      const key = this.#keyOf(text)
      if (this.#texts.has(key)) continue
      if (this.#texts.size < this.#max) this.#texts.set(key, text)
      else this.#cut++
    }
  }

  toList(): string[] {
    return [...this.#texts.values()]
  }
}

/**
 * A finding that occurs more than once in a payload: the worst severity, the highest scores, all fixed versions, file
 * paths and aliases, and the descriptive fields of the first occurrence (docs/contract.md#findings).
 */
export class MergedFinding {
  readonly #row: FindingRow
  readonly #aliases = new BoundedUnion(MAX_ALIASES, (id) => id.toUpperCase())
  readonly #fixedVersions = new BoundedUnion(MAX_MERGED_FIXED_VERSIONS)
  readonly #filePaths = new BoundedUnion(MAX_MERGED_FILE_PATHS)
  #omitted = 0

  constructor(first: FindingRow) {
    this.#row = { ...first }
    this.#unite(first)
  }

  add(later: FindingRow): void {
    const row = this.#row
    this.#unite(later)
    row.severity = Math.min(row.severity, later.severity)
    row.score = highest(row.score, later.score)
    // The spread sets the order (earliest occurrence first); the last part restores this row's own values.
    row.cvss = Object.fromEntries(Object.entries({ ...row.cvss, ...later.cvss, ...row.cvss }).slice(0, MAX_VENDORS))
    for (const key of DESCRIPTIVE) row[key] ??= later[key]
    row.kev = row.kev || later.kev || (row.kev ?? later.kev)
    row.kev_date_added = earliest(row.kev_date_added, later.kev_date_added)
    row.epss = highest(row.epss, later.epss)
    row.epss_percentile = highest(row.epss_percentile, later.epss_percentile)
  }

  #unite({ aliases, fixed_versions, file_paths, omitted }: FindingRow): void {
    this.#aliases.add(aliases ?? [])
    this.#fixedVersions.add(fixed_versions)
    this.#filePaths.add(file_paths)
    this.#omitted += omitted ?? 0
  }

  toRow(): FindingRow {
    const aliases = this.#aliases.toList()
    const omitted = this.#omitted + this.#aliases.cut + this.#fixedVersions.cut + this.#filePaths.cut
    return {
      ...this.#row,
      fixed_versions: this.#fixedVersions.toList(),
      file_paths: this.#filePaths.toList(),
      aliases: aliases.length > 0 ? aliases : undefined,
      omitted: omitted || undefined,
    }
  }
}

const highest = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)

// Canonical timestamps sort in the order of time.
const earliest = (one: string | undefined, other: string | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : one < other ? one : other

/**
 * The rows of a payload. A row stays JSON text until it is repeated, which is rare: text takes less memory than
 * objects.
 */
class FindingRows {
  readonly #rows = new Map<string, string | MergedFinding>()
  readonly #hash = new RowHash()
  #unreadableTimes = 0

  add(posted: Finding, where: string): void {
    const row = findingRow(posted, where)
    this.#unreadableTimes += countUnreadable(posted.published_at, posted.last_modified_at, posted.kev_date_added)
    const json = JSON.stringify(row)
    this.#hash.add(json)
    // Cleaned text contains no U+0000, so it can separate the parts.
    const key = `${row.vuln_id}\0${row.package_name}\0${row.installed_version}`
    const known = this.#rows.get(key)
    if (known === undefined) {
      this.#rows.set(key, json)
      return
    }
    const merged = typeof known === 'string' ? new MergedFinding(JSON.parse(known) as FindingRow) : known
    merged.add(row)
    this.#rows.set(key, merged)
  }

  finish() {
    const rows = [...this.#rows.values()].map((row) => (typeof row === 'string' ? row : JSON.stringify(row.toRow())))
    return { rows: `[${rows.join(',')}]`, hash: this.#hash.digest(), unreadableTimes: this.#unreadableTimes }
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
    const { rows: json, hash, unreadableTimes } = rows()
    return {
      header: {
        ...sharedHeader(posted),
        source,
        db_updated_at: posted.db_updated_at || null,
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
      unreadableTimes: unreadableTimes + countUnreadable(posted.db_updated_at),
    }
  },
}
