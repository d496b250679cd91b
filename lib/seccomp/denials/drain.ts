/** What a node sends at each drain: its envelope, and what is left of its entries (interop-profiling 1.9, P31; workload-profiling, Denial ingest rules). */
import { z } from 'zod'
import { NOT_BLANK_PATTERN } from '../../http/request/fields.ts'
import { tooMany } from '../../json/prescan.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { Slice } from '../../process/event-loop.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { type Denial, type Fault, judgeDenial, shownEntry, united } from './entry.ts'

export const MAX_DRAIN_BYTES = 4 * 1024 * 1024
/** Twice what an agent sends at once. */
export const MAX_DRAIN_ENTRIES = 10_000
const MAX_NODE_BYTES = 253
/** A node that drains more seldom counts as one that drains so often. */
const MAX_INTERVAL_SECS = 600

/** Whoever sends it waits until it is taken: only what cannot be read at all is refused. */
export const Drain = z
  .object({
    node: documentedAs(
      z
        .string()
        .refine(
          (name) => name.trim() !== '' && !isLongerThan(name, MAX_NODE_BYTES),
          `expected 1 to ${MAX_NODE_BYTES} bytes, not blank`,
        ),
      {
        type: 'string',
        minLength: 1,
        maxLength: MAX_NODE_BYTES,
        pattern: NOT_BLANK_PATTERN,
        description: `Not blank, at most ${MAX_NODE_BYTES} bytes.`,
      },
    ),
    capturing: documentedAs(z.unknown().optional(), {
      type: 'boolean',
      default: false,
      description:
        'Whether the probe is attached. Denials that are stored say so, too; anything else than `true` does not.',
    }),
    intervalSeconds: documentedAs(z.unknown().optional(), {
      type: 'integer',
      description: `Seconds between drains; what is above ${MAX_INTERVAL_SECS} is taken for that, and what is no number from 1 on for none.`,
    }),
    denials: documentedAs(z.custom<readonly unknown[]>(Array.isArray, 'expected an array'), {
      type: 'array',
      maxItems: MAX_DRAIN_ENTRIES,
      items: shownEntry,
      description: 'Entries that cannot be stored are dropped; the others are stored all the same.',
    }),
  })
  .meta({ id: 'DenialDrain' })
export type Drain = z.output<typeof Drain>

/** What is left of the entries of a drain. */
export interface Folded {
  /** Each pod, syscall and action once. */
  readonly denials: readonly Denial[]
  /** How many entries were dropped, by why. */
  readonly dropped: Readonly<Partial<Record<Fault, number>>>
}

/** Judges and folds entries, in slices. 413 for more than `MAX_DRAIN_ENTRIES`. */
export async function fold(entries: readonly unknown[]): Promise<Folded> {
  if (entries.length > MAX_DRAIN_ENTRIES) throw tooMany(MAX_DRAIN_ENTRIES, 'elements')
  const denials = new Map<string, Denial>()
  const dropped: Partial<Record<Fault, number>> = {}
  const slice = new Slice()
  for (const entry of entries) {
    const denial = judgeDenial(entry)
    if (typeof denial === 'string') dropped[denial] = (dropped[denial] ?? 0) + 1
    else {
      // None of them holds U+0000.
      const key = `${denial.pod_uid}\0${denial.syscall}\0${denial.action}`
      const first = denials.get(key)
      denials.set(key, first === undefined ? denial : united(first, denial))
    }
    if (slice.isOver) await slice.next()
  }
  return { denials: [...denials.values()], dropped }
}

/** The declared cadence of a node: whole seconds as stored, or null for none, and whether it was more. */
export function intervalOf(value: unknown): { seconds: number | null; isClamped: boolean } {
  const seconds = typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : 0
  return { seconds: seconds > 0 ? Math.min(seconds, MAX_INTERVAL_SECS) : null, isClamped: seconds > MAX_INTERVAL_SECS }
}
