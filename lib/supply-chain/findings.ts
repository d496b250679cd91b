/** The payload of POST /images/{digest}/vulnerabilities (docs/contract.md#findings). */
import { z } from 'zod'
import { listOf } from '../http/request/first-fault.ts'
import { sourceNamed } from '../wire-names/index.ts'
import { countUnreadable, MAX_WORD_BYTES, optional, optionalFlag, optionalInstant, optionalText } from './fields.ts'
import { type FindingRow, findingRow, PostedFinding } from './finding-row.ts'
import { HeaderShape } from './header.ts'
import { MergedFinding } from './merged-finding.ts'
import type { PayloadRows, PayloadSpec } from './payload.ts'

export const MAX_FINDINGS = 20_000
const MAX_SBOM_SOURCES = 8

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

/**
 * The rows of a payload, repeated findings merged. A row stays JSON text until it is repeated, which is rare: text
 * takes less memory than objects.
 */
class FindingRows implements PayloadRows<PostedFinding> {
  readonly #rows = new Map<string, string | MergedFinding>()
  unreadableTimes = 0

  add(posted: PostedFinding, where: string): string {
    const row = findingRow(posted, where)
    this.unreadableTimes += countUnreadable(posted.published_at, posted.last_modified_at, posted.kev_date_added)
    const json = JSON.stringify(row)
    // Cleaned text contains no U+0000, so it can separate the parts.
    const key = `${row.vuln_id}\0${row.package_name}\0${row.installed_version}`
    const known = this.#rows.get(key)
    if (known === undefined) {
      this.#rows.set(key, json)
      return json
    }
    const merged = typeof known === 'string' ? new MergedFinding(JSON.parse(known) as FindingRow) : known
    merged.add(row)
    this.#rows.set(key, merged)
    return json
  }

  toList(): string[] {
    return [...this.#rows.values()].map((row) => (typeof row === 'string' ? row : JSON.stringify(row.toRow())))
  }
}

function knownSources(sent: string | readonly string[]) {
  const first = (typeof sent === 'string' ? [sent] : sent).slice(0, MAX_SBOM_SOURCES)
  const known = first.map((name) => sourceNamed(name.trim())).filter((source) => source !== undefined)
  return [...new Set(known)].sort()
}

export const findings: PayloadSpec<typeof PostedFindings, typeof PostedFinding> = {
  schema: PostedFindings,
  listKey: 'vulnerabilities',
  element: PostedFinding,
  maxElements: MAX_FINDINGS,
  createRows: () => new FindingRows(),
  finish: ({ os, db_updated_at, sbom_sources, sbom_source }, { hash }) => ({
    header: {
      db_updated_at: db_updated_at || null,
      os_family: os?.family ?? null,
      os_name: os?.name ?? null,
      os_eosl: os?.eosl ?? false,
      content_hash: hash,
      sbom_sources: knownSources(sbom_sources ?? sbom_source ?? []),
    },
    page: null,
    unreadableTimes: countUnreadable(db_updated_at),
  }),
}
