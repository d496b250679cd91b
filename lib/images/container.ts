import { MAX_NAME_CHARS, MAX_WORD_CHARS } from '../http/request/fields.ts'
import { isLongerThan } from '../text/utf8.ts'
import { isDigest } from './digest.ts'
import { containerSecurity } from './security.ts'
import { cutText, isMangled, isObject, type Json, textOf } from './values.ts'

/** 253 bytes and not characters: a row's index entry, of five names at their longest, must stay below a third of a page. */
const MAX_CONTAINER_NAME_BYTES = MAX_NAME_CHARS
const MAX_REFERENCE_BYTES = 1_024
const MAX_REPOSITORY_CHARS = 512
const MAX_TAG_CHARS = 128

/** What stands for a reference that was too long or mangled. */
export const MALFORMED_REFERENCE = 'malformed_reference'

const KINDS = new Set(['init', 'regular', 'ephemeral'])
const DIGEST_KINDS = new Set<unknown>(['repo', 'config', 'pinned'])
const STATES = new Set<unknown>(['running', 'waiting', 'terminated'])

/** The parts of a reference that can be malformed; the label of the metric (interop-core 1.10). */
export type Part = 'image_ref' | 'repository' | 'tag'

/** A container as `posted_containers` reads it. Without a digest it is being pulled. */
export interface Container {
  container_name: string
  container_kind: string
  image_ref: string
  image_digest: string | null
  digest_kind: string | null
  repository: string | null
  tags: string[]
  security_context: Json
  state: string | null
  state_reason: string | null
}

/**
 * One entry of `containers` (interop-core 9.1); null when it has no usable name, kind or image. `malformed` hears of each part that
 * was replaced or dropped.
 */
export function readContainer(entry: unknown, malformed: (part: Part) => void): Container | null {
  if (!isObject(entry)) return null
  const container_name = containerName(entry.name)
  const container_kind = typeof entry.kind === 'string' ? entry.kind.toLowerCase() : ''
  if (container_name === null || !KINDS.has(container_kind)) return null
  if (typeof entry.image !== 'string' || entry.image.trim() === '') return null
  const hasDigest = isDigest(entry.digest) && DIGEST_KINDS.has(entry.digest_kind)
  const state = stateOf(entry.state)
  const tag = readPart(entry.tag, MAX_TAG_CHARS, () => malformed('tag'))
  return {
    container_name,
    container_kind,
    image_ref: readReference(entry.image, () => malformed('image_ref')),
    image_digest: hasDigest ? (entry.digest as string) : null,
    digest_kind: hasDigest ? (entry.digest_kind as string) : null,
    repository: readPart(entry.repository, MAX_REPOSITORY_CHARS, () => malformed('repository')),
    tags: tag === null ? [] : [tag],
    security_context: containerSecurity(entry.security_context),
    state,
    state_reason: state === null ? null : cutText(entry.state_reason, MAX_WORD_CHARS),
  }
}

/** A name that is not blank and of a length that can be stored, else null. */
export function containerName(value: unknown): string | null {
  const name = textOf(value)
  return name !== null && !isLongerThan(name, MAX_CONTAINER_NAME_BYTES) ? name : null
}

/** A state that is known, else null. */
export const stateOf = (value: unknown): string | null => (STATES.has(value) ? (value as string) : null)

function readReference(image: string, malformed: () => void): string {
  if (Buffer.byteLength(image) <= MAX_REFERENCE_BYTES && !isMangled(image)) return image
  malformed()
  return MALFORMED_REFERENCE
}

/** Null and blank are nothing sent; what is too long, mangled or no text is malformed. */
function readPart(value: unknown, maxChars: number, malformed: () => void): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') {
    if (value.length <= maxChars && !isMangled(value)) return value.trim() === '' ? null : value
  }
  malformed()
  return null
}
