/** A drain: the denials that a node collected since its previous drain (docs/contract.md#denials). */
import { z } from 'zod'
import { type Dropped, entryList, nodeName } from '../../entries/index.ts'
import { tooMany } from '../../json/prescan.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { type Denial, DenialEntry, merged } from './entry.ts'

/** Twice the number that an agent sends at once. */
export const MAX_DRAIN_ENTRIES = 10_000
/** Longer intervals are stored as this one. */
const MAX_INTERVAL_SECS = 600

/** Agents repeat a post until it is accepted, so only a broken envelope is refused; bad entries are dropped. */
export const Drain = z
  .object({
    node: nodeName,
    capturing: documentedAs(z.unknown().optional(), {
      type: 'boolean',
      default: false,
      description: 'Whether the probe is attached. Any value but `true` counts as false; stored denials count as true.',
    }),
    intervalSeconds: documentedAs(z.unknown().optional(), {
      type: 'integer',
      description:
        `Seconds between drains, at most ${MAX_INTERVAL_SECS}: more counts as that, and a value that is ` +
        'no number from 1 on as absent.',
    }),
    denials: entryList(
      DenialEntry,
      MAX_DRAIN_ENTRIES,
      'Entries that cannot be stored are dropped; the others are stored all the same.',
    ),
  })
  .meta({ id: 'DenialDrain' })
export type Drain = z.output<typeof Drain>

/**
 * Parses entries in slices, and merges those of one pod, syscall and action.
 * @throws HttpError 413 for more than `MAX_DRAIN_ENTRIES`
 */
export async function mergeEntries(entries: readonly unknown[]): Promise<{ denials: Denial[]; dropped: Dropped }> {
  if (entries.length > MAX_DRAIN_ENTRIES) throw tooMany(MAX_DRAIN_ENTRIES, 'elements')
  const denials = new Map<string, Denial>()
  const dropped = await DenialEntry.parseAll(entries, (denial) => {
    // No text of an entry holds U+0000.
    const key = `${denial.pod_uid}\0${denial.syscall}\0${denial.action}`
    const known = denials.get(key)
    denials.set(key, known === undefined ? denial : merged(known, denial))
  })
  return { denials: [...denials.values()], dropped }
}

/** The declared interval of a node in whole seconds, or null, and whether it was cut to the maximum. */
export function intervalOf(value: unknown): { seconds: number | null; isClamped: boolean } {
  const seconds = typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : 0
  return { seconds: seconds > 0 ? Math.min(seconds, MAX_INTERVAL_SECS) : null, isClamped: seconds > MAX_INTERVAL_SECS }
}
