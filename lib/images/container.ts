import { MAX_NAME_CHARS, MAX_WORD_CHARS } from '../http/request/fields.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
import { isLongerThan } from '../text/utf8.ts'
import { isDigest } from './digest.ts'
import { containerSecurity } from './security.ts'
import { cutText, isMangled, textOf } from './values.ts'

/** In bytes, not characters: an index entry of five such names must stay below a third of a page of PostgreSQL. */
const MAX_CONTAINER_NAME_BYTES = MAX_NAME_CHARS
const MAX_REFERENCE_BYTES = 1_024
const MAX_REPOSITORY_CHARS = 512
const MAX_TAG_CHARS = 128

/** Stored in place of a reference that was too long or had control characters. */
export const MALFORMED_REFERENCE = 'malformed_reference'

const KINDS = new Set(['init', 'regular', 'ephemeral'])
const DIGEST_KINDS = new Set<unknown>(['repo', 'config', 'pinned'])
const STATES = new Set<unknown>(['running', 'waiting', 'terminated'])

/** The parts of a reference that can be malformed; values of the label `field` of the metric. */
export type ReferencePart = 'image_ref' | 'repository' | 'tag'

/** A container as `posted_containers` reads it. Without a digest its image is still being pulled. */
export interface ContainerEntry {
  container_name: string
  container_kind: string
  image_ref: string
  image_digest: string | null
  digest_kind: string | null
  repository: string | null
  tags: string[]
  security_context: JsonObject
  state: string | null
  state_reason: string | null
}

/**
 * Reads one entry of `containers` (docs/contract.md#images); null without a usable name, kind or image. Calls
 * `malformed` for each part that was replaced or dropped.
 */
export function readContainer(entry: unknown, malformed: (part: ReferencePart) => void): ContainerEntry | null {
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

/** Returns a name that is not blank and short enough to store, else null. */
export function containerName(value: unknown): string | null {
  const name = textOf(value)
  return name !== null && !isLongerThan(name, MAX_CONTAINER_NAME_BYTES) ? name : null
}

/** Returns a known state, else null. */
export const stateOf = (value: unknown): string | null => (STATES.has(value) ? (value as string) : null)

function readReference(image: string, malformed: () => void): string {
  if (Buffer.byteLength(image) <= MAX_REFERENCE_BYTES && !isMangled(image)) return image
  malformed()
  return MALFORMED_REFERENCE
}

/** Null and blank count as absent; a value that is too long, has control characters or is no text is malformed. */
function readPart(value: unknown, maxChars: number, malformed: () => void): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') {
    if (value.length <= maxChars && !isMangled(value)) return value.trim() === '' ? null : value
  }
  malformed()
  return null
}
