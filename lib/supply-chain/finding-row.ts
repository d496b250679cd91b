/** A finding as it is posted, and as it is stored. */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { recordOf } from '../http/request/first-fault.ts'
import { canonicalId } from './advisory.ts'
import {
  firstOf,
  MAX_NAME_BYTES,
  MAX_URL_BYTES,
  MAX_VERSION_BYTES,
  MAX_WORD_BYTES,
  optional,
  optionalFinite,
  optionalFlag,
  optionalInstant,
  optionalReal,
  optionalShare,
  optionalText,
  requiredText,
} from './fields.ts'
import { severityNumber } from './severity.ts'
import { STATUSES, statusNumber } from './status.ts'
import { cleanDistinct, cleanKeys } from './text.ts'

export const MAX_VENDORS = 8
export const MAX_ALIASES = 32
const MAX_FILE_PATHS = 16

/** Longest stored texts, in bytes. */
const MAX_ID_BYTES = 128
const MAX_TEXT_BYTES = 512
const MAX_VECTOR_BYTES = 128
const MAX_V40_VECTOR_BYTES = 512

const PostedScores = z
  .object({
    v2_score: optionalFinite,
    v2_vector: optionalText(MAX_VECTOR_BYTES),
    v3_score: optionalFinite,
    v3_vector: optionalText(MAX_VECTOR_BYTES),
    v40_score: optionalFinite,
    v40_vector: optionalText(MAX_V40_VECTOR_BYTES),
  })
  .meta({ id: 'PostedScores' })
type Scores = z.output<typeof PostedScores>

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
      .transform(severityNumber)
      .describe(
        '`CRITICAL`, `HIGH`, `MEDIUM`, `LOW` or `NONE`, in any case; `important` is `HIGH`, `moderate` `MEDIUM`, ' +
          '`negligible` and `unimportant` `NONE`; anything else is `UNKNOWN`, whatever the score.',
      ),
    status: z
      .string()
      .nullish()
      .transform(statusNumber)
      .describe(
        `What the vendor of the package says about a fix: \`Status\` of Trivy (${STATUSES.join(', ')}) or ` +
          '`fix.state` of Grype (fixed, not-fixed, wont-fix, unknown), in any case; any other word is absent.',
      ),
    score: optionalReal,
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
    epss: optionalShare,
    epss_percentile: optionalShare,
  })
  .meta({ id: 'PostedFinding' })
export type PostedFinding = z.output<typeof PostedFinding>

/**
 * The row of a finding, with unknown values undefined; `where` is its position in the payload. 422 without an id or a
 * package name.
 */
export function findingRow(posted: PostedFinding, where: string) {
  const { name: package_name, version, type, purl } = posted.package
  if (posted.id === undefined) throw new HttpError(422, `${where}.id: expected text`)
  if (package_name === undefined) throw new HttpError(422, `${where}.package.name: expected text`)
  const { vuln_id, aliases } = canonicalId(posted.id, cleanDistinct(posted.aliases, MAX_ALIASES, MAX_ID_BYTES))
  const omitted = beyond(posted.aliases, MAX_ALIASES) + beyond(posted.file_paths, MAX_FILE_PATHS)
  return {
    severity: posted.severity,
    vuln_id,
    package_name,
    installed_version: version ?? '',
    package_type: type,
    package_purl: purl,
    fixed_versions: posted.fixed_version === undefined ? [] : [posted.fixed_version],
    score: posted.score,
    cvss: cleanKeys(posted.cvss, MAX_VENDORS, MAX_WORD_BYTES, (one): one is Scores => Boolean(one)),
    title: posted.title,
    primary_url: posted.primary_url,
    target: posted.target,
    class: posted.class,
    published_at: posted.published_at || undefined,
    last_modified_at: posted.last_modified_at || undefined,
    file_paths: cleanDistinct(posted.file_paths, MAX_FILE_PATHS, MAX_URL_BYTES),
    kev: posted.kev ?? undefined,
    kev_date_added: posted.kev_date_added || undefined,
    epss: posted.epss,
    epss_percentile: posted.epss_percentile,
    // JSON leaves undefined keys out, so a payload without these three has the same hash as before they existed.
    aliases: aliases.length > 0 ? aliases : undefined,
    status: posted.status,
    /** Number of aliases, fixed versions and file paths that were cut; never 0. */
    omitted: omitted || undefined,
  }
}
export type FindingRow = ReturnType<typeof findingRow>

/** Returns how many entries of a list exceed its limit. */
const beyond = (list: readonly string[] | null | undefined, max: number) => Math.max(0, (list?.length ?? 0) - max)
