/** The parts that payloads of findings and SBOMs share: everything but the list (docs/contract.md#findings). */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { recordOf } from '../http/request/first-fault.ts'
import { DIGEST_PATTERN, isDigest } from '../images/digest.ts'
import { SOURCE_NAMES, type Source, sourceNamed } from '../wire-names/index.ts'
import {
  firstOf,
  instant,
  MAX_NAME_BYTES,
  MAX_WORD_BYTES,
  optional,
  optionalText,
  SCHEMA_VERSION,
  schemaVersion,
} from './fields.ts'
import { normalRepository } from './repository.ts'
import { clean, cleanKeys } from './text.ts'

const MAX_PLATFORMS = 64
const MAX_WORKLOADS = 64

/** Longest stored texts, in bytes. */
const MAX_REF_BYTES = 1024
const MAX_REGISTRY_BYTES = 256
const MAX_TAG_BYTES = 128

/** Seconds that the clock of a scanner may be ahead. */
export const MAX_SKEW_SECONDS = 60
const MS_PER_SECOND = 1_000

const PostedImage = z
  .object({
    digest: z.string().meta({ pattern: DIGEST_PATTERN }).describe('The digest of the path.'),
    ref: optionalText(MAX_REF_BYTES),
    registry: optionalText(MAX_REGISTRY_BYTES),
    repository: optionalText(MAX_REF_BYTES),
    tag: optionalText(MAX_TAG_BYTES),
    digest_kind: z.string().nullish().describe('`index` or `manifest`; anything else is `unknown`.'),
    platform_manifests: optional(recordOf(z.string())).describe(
      `The digest of each platform, by \`os/arch[/variant]\`. The first ${MAX_PLATFORMS} are kept, and of these ` +
        'only digests.',
    ),
    index_digest: z
      .string()
      .nullish()
      .describe(`Stored if it is a digest (\`${DIGEST_PATTERN}\`) and differs from \`digest\`.`),
  })
  .meta({ id: 'PostedImage' })

const PostedScanner = z
  .object({
    name: optionalText(MAX_WORD_BYTES),
    vendor: optionalText(MAX_WORD_BYTES),
    version: optionalText(MAX_WORD_BYTES),
  })
  .meta({ id: 'PostedScanner' })

const PostedWorkload = z
  .object({
    namespace: optionalText(MAX_NAME_BYTES),
    kind: optionalText(MAX_WORD_BYTES),
    name: optionalText(MAX_NAME_BYTES),
    container: optionalText(MAX_NAME_BYTES),
  })
  .meta({
    id: 'PostedWorkload',
    description: 'A container that the scanner saw; one without namespace or name is left out.',
  })

/** The keys that both payloads have. `sbomTrust` is an older spelling of `sbom_trust`. */
export const HeaderShape = {
  schema_version: schemaVersion,
  image: PostedImage,
  source: z
    .string()
    .meta({ enum: SOURCE_NAMES })
    .describe(
      'The source: `operator-scanner`, `db-matcher` or `registry`, or the product name of one, spelled exactly.',
    ),
  scanner: optional(PostedScanner),
  scanned_at: instant.describe(`At most ${MAX_SKEW_SECONDS} seconds ahead.`),
  observed_in: firstOf(PostedWorkload, MAX_WORKLOADS),
  sbom_trust: z
    .string()
    .nullish()
    .describe(
      '`attached-unbound`, `unverified`, `scanned` or `verified`; any other text counts as `attached-unbound`.',
    ),
  sbomTrust: z.string().nullish().describe('An older name of `sbom_trust`.'),
}

export type PostedHeader = z.output<z.ZodObject<typeof HeaderShape>>

/** The trust of an SBOM of which nothing is known. */
export const WEAKEST_TRUST = 'attached-unbound'
const TRUSTS = [WEAKEST_TRUST, 'unverified', 'scanned', 'verified']

/** Returns the trust that a payload states; an unknown word counts as the weakest, no word is undefined. */
export function statedTrust({
  sbom_trust,
  sbomTrust,
}: Pick<PostedHeader, 'sbom_trust' | 'sbomTrust'>): string | undefined {
  const stated = clean(sbom_trust ?? sbomTrust, MAX_WORD_BYTES)
  return stated === undefined || TRUSTS.includes(stated) ? stated : WEAKEST_TRUST
}

/** Whether a naive UTC time is further ahead of `now` (Unix milliseconds) than a clock may be. */
export const isAhead = (time: string, now: number): boolean =>
  Math.trunc((Date.parse(`${time}Z`) - now) / MS_PER_SECOND) > MAX_SKEW_SECONDS

/**
 * Checks a payload in this order: schema version, digest of the path, source, and time of the scan. Throws 422 at the
 * first fault; returns the source.
 */
export function checkContract(
  { schema_version, image, source, scanned_at }: PostedHeader,
  digest: string,
  now: number,
): Source {
  if (schema_version !== SCHEMA_VERSION) throw new HttpError(422, `schema_version: expected ${SCHEMA_VERSION}`)
  if (image.digest !== digest) throw new HttpError(422, 'image.digest: expected the digest of the path')
  const known = sourceNamed(source)
  if (known === undefined) throw new HttpError(422, 'source: expected operator-scanner, db-matcher or registry')
  if (isAhead(scanned_at, now)) throw new HttpError(422, `scanned_at: more than ${MAX_SKEW_SECONDS} seconds ahead`)
  return known
}

/** Header fields that only one kind of payload has. */
const OTHER_FIELDS = {
  db_updated_at: null as string | null,
  os_family: null as string | null,
  os_name: null as string | null,
  os_eosl: false,
  sbom_format: null as string | null,
  sbom_spec_version: null as string | null,
  sbom_sources: [] as readonly Source[],
  attestation: null as object | null,
}

/** `sbom_trust` is that of the payload where it is not given. */
type OwnFields = Partial<typeof OTHER_FIELDS> & {
  readonly content_hash: string
  readonly sbom_trust?: string | null
}

/** The document that `store_findings` and `store_sbom` take beside the rows. Times are naive UTC. */
export function headerOf(posted: PostedHeader, source: Source, itemCount: number, own: OwnFields) {
  const { image, scanner } = posted
  const { index_digest } = image
  const kind = image.digest_kind?.trim()
  return {
    digest: image.digest,
    source,
    digest_kind: kind === 'index' || kind === 'manifest' ? kind : 'unknown',
    platform_manifests: cleanKeys(image.platform_manifests, MAX_PLATFORMS, MAX_WORD_BYTES, isDigest),
    index_digest: isDigest(index_digest) && index_digest !== image.digest ? index_digest : null,
    image_ref: image.ref ?? null,
    registry: image.registry ?? null,
    repository: image.repository ?? null,
    normal_repository: normalRepository(image.registry, image.repository) ?? null,
    tag: image.tag ?? null,
    scanner_name: scanner?.name ?? null,
    scanner_vendor: scanner?.vendor ?? null,
    scanner_version: scanner?.version ?? null,
    scanned_at: posted.scanned_at,
    observed_in: workloads(posted.observed_in ?? []),
    item_count: itemCount,
    sbom_trust: statedTrust(posted) ?? null,
    ...OTHER_FIELDS,
    ...own,
  }
}

function workloads(posted: NonNullable<PostedHeader['observed_in']>) {
  const distinct = new Map<string, object>()
  for (const { namespace, kind = '', name, container = '' } of posted.slice(0, MAX_WORKLOADS)) {
    if (namespace === undefined || name === undefined) continue
    // A workload without a container matches no image, but is stored: it shows where the scanner ran.
    const workload = { namespace, kind, name, container }
    distinct.set(JSON.stringify(workload), workload)
  }
  return [...distinct.values()]
}
