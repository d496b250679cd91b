/** Stores minutes of containers, and the culprits of their waits (docs/contract.md#compute). */
import { z } from 'zod'
import { fixed } from '../db/index.ts'
import { EntrySchema } from '../entries/index.ts'
import { Slice } from '../event-loop/slices.ts'
import type { Deps } from '../http/route.ts'
import { type Blame, blame, Culprit } from './blame.ts'
import { cpuCounts, identity, memoryCounts, memoryLimits, runqCounts } from './container.ts'
import { checkContainers, envelope, intervalMs, parseContainers } from './envelope.ts'
import {
  block,
  cellsOf,
  columnsOf,
  count,
  fraction,
  histogram,
  id,
  ignored,
  nullableBlock,
  parametersOf,
  requiredBlock,
} from './fields.ts'
import { Columns } from './literal.ts'

const ROUTE = '/pod/compute/history/batch'
const USUAL_SECS = 60
/** A day, because a partition covers a day. */
const MAX_RESOLUTION_SECS = 86_400
/** Culprits of a container and minute: twice the number agents send. */
const MAX_CULPRITS = 20

const bytes = block({ avg: count(), max: count(), last: count() })
const pressure = block({ avg: fraction(), max: fraction() }).describe('Percent.')
const pressures = { psi_some10: pressure, psi_full10: pressure }

/** The values of a container, in the order of the parameters of `store_minutes`. */
export const minute = {
  cpu: requiredBlock('cpu_', {
    usage_millis: block({ avg: fraction(), max: fraction(), last: fraction() }),
    ...cpuCounts,
    ...pressures,
  }),
  memory: requiredBlock('mem_', {
    current: bytes,
    working_set: bytes,
    ...memoryLimits,
    ...pressures,
    ...memoryCounts,
  }),
  runq: nullableBlock({ ...runqCounts, hist: histogram }).describe('Null without a probe.'),
}

const Minute = new EntrySchema(
  z.object({
    ...identity,
    cgroup_id: ignored(id),
    ...minute,
    blame: blame.describe(`Those that have a kind and a wait are kept, at most the heaviest ${MAX_CULPRITS}.`),
  }),
)

/** The body of a post. Agents repeat a post until it is accepted, so only a broken envelope is refused. */
export const Minutes = z
  .object({
    ...envelope(Minute),
    interval_ms: intervalMs.optional(),
    resolution_secs: z.int().min(1).max(MAX_RESOLUTION_SECS).default(USUAL_SECS).describe('Seconds that a row is of.'),
  })
  .meta({ id: 'ComputeMinutes' })
export type Minutes = z.output<typeof Minutes>

const CONTAINER = { ...identity, ...minute }
const WIDTH = columnsOf(CONTAINER).length
const CULPRIT = Culprit.schema.shape
const PAIR_WIDTH = 2 + columnsOf(CULPRIT).length
const VICTIM = 4 + WIDTH

const store = fixed(`
  select store_minutes($1, $2::text::timestamp, $3::bigint, ${parametersOf(CONTAINER, 4)},
                       $${VICTIM}::text::integer[], ${parametersOf(CULPRIT, VICTIM + 1)},
                       $${VICTIM + PAIR_WIDTH - 1}::text::boolean[])`)

/**
 * Stores a post in one statement. Resolves to the number of distinct valid containers, including minutes that are
 * stored already. Skipped containers are counted and logged. With 0 days of history nothing is stored. Throws 413 for
 * too many containers.
 */
export async function takeMinutes(
  { db, rejections, config }: Pick<Deps, 'db' | 'rejections' | 'config'>,
  { node, ts, resolution_secs, containers }: Minutes,
): Promise<number> {
  checkContainers(containers)
  if (config.computeHistoryRetentionDays === 0) return 0
  const rows = new Columns(WIDTH)
  const culprits: (readonly Culprit[])[] = []
  const dropped = await parseContainers(Minute, containers, (container, blame, place) => {
    rows.set(place, cellsOf(container))
    const { heaviest, left } = heaviestOf(blame)
    culprits[place] = heaviest
    return left
  })
  const accepted = rows.length
  if (accepted > 0) {
    const columns = [...(await rows.literals()), ...(await (await pairsOf(culprits)).literals())]
    await db.ingest((sql) => store(sql, node, ts, resolution_secs, ...columns))
  }
  rejections.note(ROUTE, dropped, 'minutes of compute were skipped, counted by the field at fault')
  return accepted
}

/**
 * Returns the culprits that have a kind and a wait, at most the ones with the longest waits. `left` counts invalid
 * entries and those beyond the limit.
 */
function heaviestOf({ culprits, bad }: Blame): { heaviest: readonly Culprit[]; left: number } {
  const found = culprits.filter(({ kind, wait_ns }) => kind !== '' && wait_ns > 0)
  if (found.length <= MAX_CULPRITS) return { heaviest: found, left: bad }
  found.sort((a, b) => b.wait_ns - a.wait_ns)
  return { heaviest: found.slice(0, MAX_CULPRITS), left: bad + found.length - MAX_CULPRITS }
}

/**
 * Pairs refer to their victim by its place, which counts from 1 in the database. The longest waits of a victim are
 * flagged.
 */
async function pairsOf(culprits: readonly (readonly Culprit[])[]): Promise<Columns> {
  const pairs = new Columns(PAIR_WIDTH)
  const slice = new Slice()
  for (const [place, those] of culprits.entries()) {
    const heaviestNs = those.reduce((most, { wait_ns }) => Math.max(most, wait_ns), 0)
    for (const culprit of those)
      pairs.set(pairs.length, [place + 1, ...Object.values(culprit), culprit.wait_ns === heaviestNs])
    if (slice.isOver) await slice.next()
  }
  return pairs
}
