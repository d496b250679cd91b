/** The payload of POST /images/{digest}/sbom: its schema, and the rows made from it (docs/contract.md#sbom). */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { listOf } from '../http/request/first-fault.ts'
import { isDigest } from '../images/digest.ts'
import {
  firstOf,
  MAX_NAME_BYTES,
  MAX_URL_BYTES,
  MAX_VERSION_BYTES,
  MAX_WORD_BYTES,
  optional,
  optionalFlag,
  optionalText,
  requiredText,
} from './fields.ts'
import { HeaderShape, statedTrust, WEAKEST_TRUST } from './header.ts'
import type { Page, PayloadRows, PayloadSpec } from './payload.ts'
import { cleanDistinct, cleanList } from './text.ts'

export const MAX_COMPONENTS = 10_000

const MAX_LICENSES = 8
/** A list of as many may be cut, and then proves nothing (docs/contract.md#in-use): repeats must not shorten it. */
const MAX_FILE_PATHS = 16
/** Paths that are looked at for these. */
const MAX_POSTED_PATHS = 1_024
const MAX_PAGES = 128
const SET_ID = /^[A-Za-z0-9._:-]{1,128}$/
const MAX_DIGEST_BYTES = 136

const PostedComponent = z
  .object({
    name: requiredText(MAX_NAME_BYTES),
    version: optionalText(MAX_VERSION_BYTES),
    purl: optionalText(MAX_URL_BYTES),
    type: optionalText(MAX_WORD_BYTES),
    class: optionalText(MAX_WORD_BYTES),
    src_name: optionalText(MAX_NAME_BYTES),
    src_version: optionalText(MAX_VERSION_BYTES),
    licenses: firstOf(z.string(), MAX_LICENSES),
    layer_digest: optionalText(MAX_DIGEST_BYTES),
    file_paths: firstOf(z.string(), MAX_FILE_PATHS),
  })
  .meta({ id: 'PostedComponent' })

const PostedPage = z
  .object({
    set_id: z.string().meta({ pattern: SET_ID.source }),
    index: z
      .int()
      .meta({ minimum: 0, maximum: MAX_PAGES - 1 })
      .describe('From 0, less than `total`.'),
    total: z
      .int()
      .meta({ minimum: 1, maximum: MAX_PAGES })
      .describe(`1 to ${MAX_PAGES}; a set of one page is a whole SBOM.`),
  })
  .meta({ id: 'PostedPage', description: 'One page of a set; without it the SBOM is whole.' })

const PostedAttestation = z
  .object({
    mechanism: optionalText(MAX_WORD_BYTES),
    artifact_digest: z.string().nullish().describe('Absent unless it is a digest.'),
    media_type: optionalText(MAX_NAME_BYTES),
    predicate_type: optionalText(MAX_NAME_BYTES),
    verified: optionalFlag,
  })
  .meta({ id: 'PostedSbomAttestation', description: 'How an SBOM of the source `registry` was found.' })

export const PostedSbom = z
  .object({
    ...HeaderShape,
    format: optionalText(MAX_WORD_BYTES),
    spec_version: optionalText(MAX_WORD_BYTES),
    attestation: optional(PostedAttestation),
    page: PostedPage.nullish(),
    components: listOf(PostedComponent, MAX_COMPONENTS).nullish(),
  })
  .meta({ id: 'PostedSbom' })

type Component = z.output<typeof PostedComponent>

/**
 * Returns a component as it is stored, with unknown values undefined. 422 without a name; `where` is its position in
 * the payload.
 */
function componentRow({ name, version, purl, type, ...posted }: Component, where: string) {
  if (name === undefined) throw new HttpError(422, `${where}.name: expected text`)
  return {
    name,
    version,
    purl,
    type,
    class: posted.class,
    src_name: posted.src_name,
    src_version: posted.src_version,
    licenses: cleanList(posted.licenses, MAX_LICENSES, MAX_VERSION_BYTES),
    layer_digest: posted.layer_digest,
    file_paths: cleanDistinct(posted.file_paths, MAX_POSTED_PATHS, MAX_URL_BYTES).slice(0, MAX_FILE_PATHS),
  }
}

class ComponentRows implements PayloadRows<Component> {
  readonly #rows: string[] = []
  readonly unreadableTimes = 0

  add(posted: Component, where: string): string {
    const json = JSON.stringify(componentRow(posted, where))
    this.#rows.push(json)
    return json
  }

  toList(): string[] {
    return this.#rows
  }
}

type Posted = z.output<typeof PostedSbom>

/** Returns the page of a set; null for a whole SBOM and for a set of one page. 422 names the field and its rule. */
export function pageOf({ page }: Pick<Posted, 'page'>): Page | null {
  if (!page) return null
  const { set_id, index, total } = page
  if (!SET_ID.test(set_id)) throw new HttpError(422, 'page.set_id: expected 1 to 128 of A-Z a-z 0-9 . _ : -')
  if (total < 1 || total > MAX_PAGES) throw new HttpError(422, `page.total: expected 1 to ${MAX_PAGES}`)
  if (index < 0 || index >= total) throw new HttpError(422, `page.index: expected 0 to ${total - 1}`)
  return total === 1 ? null : { set_id, index, total }
}

const attestationOf = ({ artifact_digest, ...posted }: NonNullable<Posted['attestation']>) => ({
  mechanism: posted.mechanism ?? null,
  artifact_digest: isDigest(artifact_digest) ? artifact_digest : null,
  media_type: posted.media_type ?? null,
  predicate_type: posted.predicate_type ?? null,
  verified: posted.verified ?? false,
})

export const components: PayloadSpec<typeof PostedSbom, typeof PostedComponent> = {
  schema: PostedSbom,
  listKey: 'components',
  element: PostedComponent,
  maxElements: MAX_COMPONENTS,
  createRows: () => new ComponentRows(),
  finish: (posted, { source, hash }) => {
    const page = pageOf(posted)
    const isRegistry = source === 'registry'
    return {
      header: {
        content_hash: page === null ? `whole:${hash}` : `set:${page.set_id}`,
        sbom_format: posted.format ?? null,
        sbom_spec_version: posted.spec_version ?? null,
        sbom_trust: statedTrust(posted) ?? (isRegistry ? WEAKEST_TRUST : null),
        attestation: isRegistry && posted.attestation ? attestationOf(posted.attestation) : null,
      },
      page,
      unreadableTimes: 0,
    }
  },
}
