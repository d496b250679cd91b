/** A denial as agents post it (docs/contract.md#denials). */
import { z } from 'zod'
import { EntrySchema, lenientInteger, lenientText, MAX_COUNT, notBlank, whole } from '../../entries/index.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { parseRfc3339 } from '../../time/timestamp.ts'
import { foldedArchitecture } from '../names.ts'

const MAX_POD_UID_BYTES = 128
const MAX_SYSCALL_BYTES = 128
const MAX_ACTION_BYTES = 64
const MAX_ARCH_BYTES = 64
/** Far more than an RFC 3339 time needs. */
const MAX_TIME_CHARS = 64

const time = lenientText({ format: 'date-time' }, (text) => (text.length > MAX_TIME_CHARS ? null : parseRfc3339(text)))
const architecture = lenientText({ maxLength: MAX_ARCH_BYTES }, (text) => {
  const folded = foldedArchitecture(text)
  return isLongerThan(folded, MAX_ARCH_BYTES) ? undefined : folded === '' ? null : folded
})

/**
 * Agents repeat a drain until it is stored, so an optional field of a wrong type counts as absent instead of dropping
 * the entry.
 */
export const DenialEntry = new EntrySchema(
  z
    .object({
      podUid: notBlank(MAX_POD_UID_BYTES),
      podName: notBlank(),
      podNamespace: notBlank(),
      syscall: notBlank(MAX_SYSCALL_BYTES),
      syscallNr: lenientInteger,
      action: notBlank(MAX_ACTION_BYTES),
      actionRaw: lenientInteger,
      arch: architecture.describe(`At most ${MAX_ARCH_BYTES} bytes.`),
      count: whole(1, MAX_COUNT).describe('Events since the previous drain.'),
      firstSeen: time.describe('With a zone. Without it, `lastSeen`.'),
      lastSeen: time.describe('With a zone. Without it, or where it is in the future, the time of the broker.'),
    })
    .transform((entry) => {
      const [first, last] = inOrder(entry.firstSeen, entry.lastSeen)
      return {
        pod_uid: entry.podUid,
        pod_name: entry.podName,
        pod_namespace: entry.podNamespace,
        syscall: entry.syscall,
        syscall_nr: entry.syscallNr,
        action: entry.action,
        action_raw: entry.actionRaw,
        arch: entry.arch,
        count: entry.count,
        first_seen: first,
        last_seen: last,
      }
    }),
)

/** A denial to be stored. Times are naive UTC, in order if both are known; null means now. */
export type Denial = z.output<typeof DenialEntry.schema>

/** Merges two denials of one pod, syscall and action: names and optional fields come from the first that has them. */
export function merged(first: Denial, second: Denial): Denial {
  return {
    ...first,
    syscall_nr: first.syscall_nr ?? second.syscall_nr,
    action_raw: first.action_raw ?? second.action_raw,
    arch: first.arch ?? second.arch,
    count: Math.min(first.count + second.count, MAX_COUNT),
    // Null means now, and no time is later than that.
    first_seen: earlier(first.first_seen, second.first_seen),
    last_seen: first.last_seen === null || second.last_seen === null ? null : later(first.last_seen, second.last_seen),
  }
}

function inOrder(first: string | null, last: string | null): [string | null, string | null] {
  return first !== null && last !== null && first > last ? [last, first] : [first ?? last, last]
}

// Canonical times sort as text in the order of time.
const later = (a: string, b: string) => (a > b ? a : b)
const earlier = (a: string | null, b: string | null) => (a === null || b === null ? (a ?? b) : a < b ? a : b)
