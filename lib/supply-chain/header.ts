/** What findings and SBOMs have in common: all of a payload but its list (interop-supply-chain 1.1 to 1.3). */
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import { recordOf } from '../http/request/first-fault.ts'
import { DIGEST_PATTERN, isDigest } from '../images/digest.ts'
import { documentedAs } from '../openapi/declare.ts'
import { SOURCE_NAMES, type Source, sourceNamed } from '../wire-names/index.ts'
import { firstOf, instant, optional, optionalText } from './fields.ts'
import { normalRepository } from './repository.ts'
import { clean } from './text.ts'

const MAX_PLATFORMS = 64
const MAX_WORKLOADS = 64

/** Bytes that are kept of texts. */
const MAX_REF_BYTES = 1024
const MAX_REGISTRY_BYTES = 256
const MAX_TAG_BYTES = 128
const MAX_NAME_BYTES = 256
const MAX_WORD_BYTES = 64

const SCHEMA_VERSION = 1
/** Whole seconds that the clock of a scanner may be ahead of ours. */
export const MAX_SKEW_SECONDS = 60
const MS_PER_SECOND = 1_000

const PostedImage = z
  .object({
    digest: z.string().meta({ pattern: DIGEST_PATTERN }).describe('That of the path.'),
    ref: optionalText(MAX_REF_BYTES),
    registry: optionalText(MAX_REGISTRY_BYTES),
    repository: optionalText(MAX_REF_BYTES),
    tag: optionalText(MAX_TAG_BYTES),
    digest_kind: z.string().nullish().describe('`index` or `manifest`; anything else is `unknown`.'),
    platform_manifests: optional(recordOf(z.string())).describe(
      `The digest of each platform, by \`os/arch[/variant]\`. The first ${MAX_PLATFORMS} are kept, of them those that are digests.`,
    ),
    index_digest: z
      .string()
      .nullish()
      .describe(`Kept where it is a digest (\`${DIGEST_PATTERN}\`) and another than \`digest\`.`),
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
  .meta({ id: 'PostedWorkload', description: 'Where an image was seen; one without namespace or name is left out.' })

/** The keys that both payloads have; `sbom_trust` has an older name. */
export const HeaderShape = {
  schema_version: documentedAs(z.int(), {
    type: 'integer',
    const: SCHEMA_VERSION,
    description: `${SCHEMA_VERSION}; any other is refused with 422.`,
  }),
  image: PostedImage,
  source: z
    .string()
    .meta({ enum: SOURCE_NAMES })
    .describe('Who sends it, exactly: `operator-scanner`, `db-matcher` or `registry`, or their other names.'),
  scanner: optional(PostedScanner),
  scanned_at: instant.describe(`At most ${MAX_SKEW_SECONDS} seconds ahead.`),
  observed_in: firstOf(PostedWorkload, MAX_WORKLOADS),
  sbom_trust: z
    .string()
    .nullish()
    .describe('`attached-unbound`, `unverified`, `scanned` or `verified`; any other text is the first of them.'),
  sbomTrust: z.string().nullish().describe('An older name of `sbom_trust`.'),
}

type Posted = z.output<z.ZodObject<typeof HeaderShape>>

/** What `store_findings` and `store_sbom` are told of a payload beside its rows. */
export interface Header {
  readonly digest: string
  readonly source: Source
  readonly digest_kind: 'index' | 'manifest' | 'unknown'
  readonly platform_manifests: Readonly<Record<string, string>>
  readonly index_digest: string | null
  readonly image_ref: string | null
  readonly registry: string | null
  readonly repository: string | null
  readonly normal_repository: string | null
  readonly tag: string | null
  readonly scanner_name: string | null
  readonly scanner_vendor: string | null
  readonly scanner_version: string | null
  /** Times are naive UTC. */
  readonly scanned_at: string
  readonly db_updated_at: string | null
  readonly os_family: string | null
  readonly os_name: string | null
  readonly os_eosl: boolean
  readonly observed_in: readonly Workload[]
  readonly content_hash: string
  readonly item_count: number
  readonly sbom_format: string | null
  readonly sbom_spec_version: string | null
  readonly sbom_sources: readonly Source[]
  readonly sbom_trust: string | null
  readonly attestation: object | null
}

export interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly container: string
}

/** What a document is trusted that nothing is known of. */
export const WEAKEST_TRUST = 'attached-unbound'
const TRUSTS = [WEAKEST_TRUST, 'unverified', 'scanned', 'verified']

/** The trust that a payload states: an unknown one is the weakest, none is undefined. */
export function statedTrust({ sbom_trust, sbomTrust }: Pick<Posted, 'sbom_trust' | 'sbomTrust'>): string | undefined {
  const stated = clean(sbom_trust ?? sbomTrust, MAX_WORD_BYTES)
  return stated === undefined || TRUSTS.includes(stated) ? stated : WEAKEST_TRUST
}

/** Whole seconds that a naive UTC time is ahead of `now`, in Unix milliseconds. */
export const secondsAhead = (time: string, now: number): number =>
  Math.trunc((Date.parse(`${time}Z`) - now) / MS_PER_SECOND)

/**
 * Holds a payload to what its sender and this broker agreed on, in this order: 422 for another schema version, a digest other than that of
 * the path, an unknown source, and a scan of the future. Answers the source.
 */
export function checkContract(
  { schema_version, image, source, scanned_at }: Posted,
  digest: string,
  now: number,
): Source {
  if (schema_version !== SCHEMA_VERSION) throw new HttpError(422, `schema_version: expected ${SCHEMA_VERSION}`)
  if (image.digest !== digest) throw new HttpError(422, 'image.digest: expected the digest of the path')
  const known = sourceNamed(source)
  if (known === undefined) throw new HttpError(422, 'source: expected operator-scanner, db-matcher or registry')
  if (secondsAhead(scanned_at, now) > MAX_SKEW_SECONDS)
    throw new HttpError(422, `scanned_at: more than ${MAX_SKEW_SECONDS} seconds ahead`)
  return known
}

/** What a header says of the image, the scanner and where the image was seen. */
export function sharedHeader({ image, scanner, scanned_at, observed_in }: Posted) {
  const registry = clean(image.registry, MAX_REGISTRY_BYTES)
  const repository = clean(image.repository, MAX_REF_BYTES)
  const { index_digest } = image
  return {
    digest: image.digest,
    digest_kind: digestKind(image.digest_kind),
    platform_manifests: platformManifests(image.platform_manifests ?? {}),
    index_digest: isDigest(index_digest) && index_digest !== image.digest ? index_digest : null,
    image_ref: clean(image.ref, MAX_REF_BYTES) ?? null,
    registry: registry ?? null,
    repository: repository ?? null,
    normal_repository: normalRepository(registry, repository) ?? null,
    tag: clean(image.tag, MAX_TAG_BYTES) ?? null,
    scanner_name: clean(scanner?.name, MAX_WORD_BYTES) ?? null,
    scanner_vendor: clean(scanner?.vendor, MAX_WORD_BYTES) ?? null,
    scanner_version: clean(scanner?.version, MAX_WORD_BYTES) ?? null,
    scanned_at,
    observed_in: workloads(observed_in ?? []),
  }
}

function digestKind(posted: string | null | undefined): Header['digest_kind'] {
  const kind = posted?.trim()
  return kind === 'index' || kind === 'manifest' ? kind : 'unknown'
}

function platformManifests(posted: Readonly<Record<string, string>>): Record<string, string> {
  const kept = new Map<string, string>()
  for (const [platform, digest] of Object.entries(posted).slice(0, MAX_PLATFORMS)) {
    const name = clean(platform, MAX_WORD_BYTES)
    if (name !== undefined && isDigest(digest) && !kept.has(name)) kept.set(name, digest)
  }
  return Object.fromEntries(kept)
}

function workloads(posted: NonNullable<Posted['observed_in']>): Workload[] {
  const kept = new Map<string, Workload>()
  for (const one of posted.slice(0, MAX_WORKLOADS)) {
    const namespace = clean(one.namespace, MAX_NAME_BYTES)
    const name = clean(one.name, MAX_NAME_BYTES)
    if (namespace === undefined || name === undefined) continue
    // Without a container it matches none, but says where the scanner was.
    const workload = {
      namespace,
      kind: clean(one.kind, MAX_WORD_BYTES) ?? '',
      name,
      container: clean(one.container, MAX_NAME_BYTES) ?? '',
    }
    kept.set(JSON.stringify(workload), workload)
  }
  return [...kept.values()]
}
