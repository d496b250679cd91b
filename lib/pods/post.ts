import { z } from 'zod'
import { address, id, MAX_ADDRESS_CHARS, NO_NULL_PATTERN, naiveTime, name } from '../http/request/fields.ts'
import { recordOf } from '../http/request/first-fault.ts'
import { exactly } from '../json/exact-integers.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
import { checkFreeForm, deserializeError } from '../json/parse.ts'
import { canonicalAddress } from '../net/address.ts'
import { documentedAs } from '../openapi/declare.ts'
import { parseRfc3339 } from '../time/timestamp.ts'
import { asPosted, member, postedObject, withoutManagedFields } from './posted-object.ts'
import { CAPTURE_LEVELS, PodEcho, PodRecord } from './record.ts'

/** More addresses than any pod has (two families, a few networks each). */
const MAX_POD_ADDRESSES = 64

/** The body of POST /pod/spec (docs/contract.md#pods). Unknown keys are dropped. */
export const PodPost = z
  .object({
    pod_name: name,
    pod_ip: address,
    time_stamp: naiveTime,
    node_name: name,
    is_dead: z.boolean(),
    pod_namespace: name.nullish(),
    pod_obj: postedObject(
      'The manifest of the pod; only `metadata` without `managedFields` and `spec.hostNetwork` are stored.',
    ).nullish(),
    pod_identity: name.nullish(),
    workload_selector_labels: documentedAs(recordOf(z.string()), {
      type: 'object',
      propertyNames: { pattern: NO_NULL_PATTERN },
      additionalProperties: { type: 'string', pattern: NO_NULL_PATTERN },
    }).nullish(),
    pod_ips: z
      .unknown()
      .optional()
      .describe(
        'An array of addresses. Blank and non-text elements are dropped; any other value counts as an empty array.',
      ),
    workload_kind: id.nullish(),
    workload_name: name.nullish(),
    // No length limit: an unknown level becomes null and never refuses the pod.
    capture_level: z.string().meta({ pattern: NO_NULL_PATTERN }).nullish(),
    host_network: z.boolean().nullish(),
    started_at: naiveTime.nullish(),
    // The image inventory accepts any value here.
    containers: z.unknown().optional().describe('The containers of the pod; unreadable parts are left out.'),
    pod_security: z.unknown().optional().describe('The security settings of the pod; unreadable parts are left out.'),
  })
  .meta({ id: 'PodPost' })
export type PodPost = z.output<typeof PodPost>

/** The answer to a blank pod_name: the record as posted, if it could be stored. */
export function echoOf(post: PodPost): PodEcho {
  checkFreeForm(post.pod_obj, 'pod_obj')
  checkFreeForm(post.pod_ips, 'pod_ips')
  return asPosted(PodEcho, { ...post, pod_obj: exactly(post.pod_obj) })
}

/**
 * The record as stored (docs/contract.md#pods): the start time is read before the status is removed, and host_network
 * comes from the manifest. `warn` is called for each dropped value.
 */
export function normalizePod(post: PodPost, warn: (message: string) => void): PodRecord {
  const pod_ip = canonicalAddress(post.pod_ip)
  return {
    ...asPosted(PodRecord, post),
    pod_ip,
    pod_obj: post.pod_obj ? compact(exactly(post.pod_obj)) : null,
    pod_ips: allAddresses(pod_ip, post.pod_ips),
    capture_level: captureLevel(post.capture_level, warn),
    host_network: post.host_network ?? hostNetwork(post.pod_obj),
    started_at: post.started_at ?? startTime(post.pod_obj, warn),
  }
}

/** Keeps `metadata` without `managedFields`, and `spec.hostNetwork`. */
function compact(manifest: JsonObject): JsonObject {
  const compacted: JsonObject = {}
  if (isObject(manifest.metadata)) {
    const metadata = withoutManagedFields(manifest.metadata)
    checkFreeForm(metadata, 'pod_obj.metadata')
    compacted.metadata = metadata
  }
  const value = member(manifest, 'spec', 'hostNetwork')
  if (value !== undefined && value !== null) {
    checkFreeForm(value, 'pod_obj.spec.hostNetwork')
    compacted.spec = { hostNetwork: value }
  }
  return compacted
}

function hostNetwork(manifest: PodPost['pod_obj']): boolean | null {
  return manifest ? member(manifest, 'spec', 'hostNetwork') === true : null
}

function startTime(manifest: PodPost['pod_obj'], warn: (message: string) => void): string | null {
  const text = member(manifest, 'status', 'startTime')
  if (text === undefined || text === null) return null
  const time = typeof text === 'string' ? parseRfc3339(text) : null
  if (time === null) warn('pod_obj.status.startTime is not an RFC 3339 time')
  return time
}

function captureLevel(sent: string | null | undefined, warn: (message: string) => void): PodRecord['capture_level'] {
  if (sent === null || sent === undefined) return null
  const posted = sent.trim().toLowerCase()
  const level = CAPTURE_LEVELS.find((one) => one === posted)
  if (level) return level
  warn('capture_level is not a known level')
  return null
}

/** The primary address first, then the others, canonical and without repeats; drops blanks and non-strings. */
function allAddresses(primary: string, sent: unknown): string[] {
  const all = new Set(primary.trim() === '' ? [] : [primary])
  for (const one of Array.isArray(sent) ? sent : []) {
    if (typeof one !== 'string' || one.trim() === '') continue
    const trimmed = one.trim()
    if (trimmed.length > MAX_ADDRESS_CHARS)
      throw deserializeError(`pod_ips: an address has more than ${MAX_ADDRESS_CHARS} characters`)
    all.add(canonicalAddress(trimmed))
    if (all.size > MAX_POD_ADDRESSES) throw deserializeError(`pod_ips: more than ${MAX_POD_ADDRESSES} addresses`)
  }
  return [...all]
}
