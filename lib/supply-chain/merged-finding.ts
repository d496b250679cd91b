import { type FindingRow, MAX_ALIASES, MAX_VENDORS } from './finding-row.ts'

/** Limits of a finding that a payload repeats: scanners list it once for each file or target that has it. */
const MAX_FIXED_VERSIONS = 256
const MAX_FILE_PATHS = 1_024

const DESCRIPTIVE = [
  'package_type',
  'title',
  'primary_url',
  'target',
  'class',
  'published_at',
  'last_modified_at',
] as const

/**
 * A finding that occurs more than once in a payload: the worst severity, the highest scores, all fixed versions, file
 * paths and aliases, what the package URLs have in common, and the descriptive fields of the first occurrence
 * (docs/contract.md#findings).
 */
export class MergedFinding {
  readonly #row: FindingRow
  readonly #aliases = new BoundedUnion(MAX_ALIASES, (id) => id.toUpperCase())
  readonly #fixedVersions = new BoundedUnion(MAX_FIXED_VERSIONS)
  readonly #filePaths = new BoundedUnion(MAX_FILE_PATHS)
  /** Undefined so far; null if two packages have nothing in common. */
  #purl: string | null | undefined
  #omitted = 0

  constructor(first: FindingRow) {
    this.#row = { ...first }
    this.#unite(first)
  }

  add(later: FindingRow): void {
    const row = this.#row
    this.#unite(later)
    row.severity = Math.min(row.severity, later.severity)
    row.status = least(row.status, later.status)
    row.score = highest(row.score, later.score)
    // The spread sets the order (earliest occurrence first); the last part restores this row's own values.
    row.cvss = Object.fromEntries(Object.entries({ ...row.cvss, ...later.cvss, ...row.cvss }).slice(0, MAX_VENDORS))
    for (const key of DESCRIPTIVE) row[key] ??= later[key]
    row.kev = row.kev || later.kev || (row.kev ?? later.kev)
    row.kev_date_added = earliest(row.kev_date_added, later.kev_date_added)
    row.epss = highest(row.epss, later.epss)
    row.epss_percentile = highest(row.epss_percentile, later.epss_percentile)
  }

  #unite({ aliases, fixed_versions, file_paths, omitted, package_purl: purl }: FindingRow): void {
    if (purl !== undefined) this.#purl = this.#purl === undefined ? purl : this.#purl && commonPurl(this.#purl, purl)
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
      package_purl: this.#purl ?? undefined,
      omitted: omitted || undefined,
    }
  }
}

/** Distinct texts in first-seen order, up to a limit, and a count of the rest. */
class BoundedUnion {
  readonly #texts = new Map<string, string>()
  readonly #max: number
  readonly #keyOf: (text: string) => string
  /** Repeats beyond the limit are counted again: telling them apart would take the memory of keeping them. */
  cut = 0

  /** Texts with the same key count as the same text. */
  constructor(max: number, keyOf = (text: string) => text) {
    this.#max = max
    this.#keyOf = keyOf
  }

  add(texts: readonly string[]): void {
    for (const text of texts) {
      const key = this.#keyOf(text)
      if (this.#texts.has(key)) continue
      if (this.#texts.size < this.#max) this.#texts.set(key, text)
      else this.cut++
    }
  }

  toList(): string[] {
    return [...this.#texts.values()]
  }
}

/** The package URL with the qualifiers that both have; null if they differ in more than qualifiers. */
function commonPurl(one: string, other: string): string | null {
  if (one === other) return one
  const [[base, qualifiers], [otherBase, others]] = [partsOf(one), partsOf(other)]
  if (base !== otherBase) return null
  const both = qualifiers.filter((qualifier) => others.includes(qualifier))
  return both.length === 0 ? base : `${base}?${both.join('&')}`
}

function partsOf(purl: string): [string, string[]] {
  const [base, qualifiers] = purl.split('#', 1)[0]!.split('?', 2) as [string, string?]
  return [base, qualifiers?.split('&') ?? []]
}

const highest = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)

const least = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

// Canonical timestamps sort in the order of time.
const earliest = (one: string | undefined, other: string | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : one < other ? one : other
