/** Stores minutes of containers, and the culprits of their waits (docs/contract.md#compute). */
import { z } from 'zod'
import { type Database, fixed } from '../db/index.ts'
import { Slice } from '../event-loop/slices.ts'
import type { Deps } from '../http/route.ts'
import { checkContainers, envelope, intervalMs, positive } from './envelope.ts'
import { type Cell, Columns, NULL, quoted } from './literal.ts'
import {
  type Container,
  CPU_COUNTS,
  type Culprit,
  cellsOf,
  containerOf,
  count,
  countSchema,
  culpritOf,
  type Fault,
  type Fields,
  fieldsOf,
  fraction,
  MEMORY_COUNTS,
  MEMORY_LIMITS,
  RUNQ_COUNTS,
  shapeOf,
} from './reading.ts'
import { shownContainer } from './shown.ts'

const ROUTE = '/pod/compute/history/batch'
const USUAL_SECS = 60
/** A day, because a partition covers a day. */
const MAX_RESOLUTION_SECS = 86_400
/** Culprits of a container and minute: twice the number agents send. */
const MAX_CULPRITS = 20
const BUCKETS = 24

const gauge = z.object({ avg: countSchema(), max: countSchema(), last: countSchema() })
const pressure = z.object({ avg: countSchema(), max: countSchema() }).describe('Percent.')
const pressures = { psi_some10: pressure.optional(), psi_full10: pressure.optional() }
const container = shownContainer(
  z.object({ usage_millis: gauge.optional(), ...shapeOf(CPU_COUNTS), ...pressures }),
  z.object({
    current: gauge.optional(),
    working_set: gauge.optional(),
    ...shapeOf(MEMORY_LIMITS),
    ...shapeOf(MEMORY_COUNTS),
    ...pressures,
  }),
  `Those that have a kind and a wait are kept, at most the heaviest ${MAX_CULPRITS}.`,
)

/** The body of a post. Agents repeat a post until it is accepted, so only a broken envelope is refused. */
export const Minutes = z
  .object({
    ...envelope(container),
    interval_ms: intervalMs.optional(),
    resolution_secs: positive(MAX_RESOLUTION_SECS).default(USUAL_SECS).describe('Seconds that a row is of.'),
  })
  .meta({ id: 'ComputeMinutes' })
export type Minutes = z.output<typeof Minutes>

/** Array parameters of `store_minutes` for a container, and for a pair. */
const [COLUMNS, PAIR_COLUMNS] = [43, 8]

const store = fixed(`
  select store_minutes(
    $1, $2::text::timestamp, $3::bigint,
    $4::text::text[], $5::text::text[], $6::text::text[], $7::text::text[], $8::text::text[],
    $9::text::float8[], $10::text::float8[], $11::text::float8[],
    $12::text::bigint[], $13::text::bigint[], $14::text::bigint[], $15::text::bigint[], $16::text::bigint[],
    $17::text::bigint[], $18::text::bigint[],
    $19::text::float8[], $20::text::float8[], $21::text::float8[], $22::text::float8[],
    $23::text::bigint[], $24::text::bigint[], $25::text::bigint[], $26::text::bigint[], $27::text::bigint[],
    $28::text::bigint[],
    $29::text::bigint[], $30::text::bigint[],
    $31::text::float8[], $32::text::float8[], $33::text::float8[], $34::text::float8[],
    $35::text::bigint[], $36::text::bigint[], $37::text::bigint[], $38::text::bigint[], $39::text::bigint[],
    $40::text::bigint[], $41::text::bigint[], $42::text::bigint[], $43::text::bigint[], $44::text::bigint[],
    $45::text::bigint[], $46::text::text[],
    $47::text::integer[], $48::text::bigint[], $49::text::text[], $50::text::text[], $51::text::text[],
    $52::text::bigint[], $53::text::bigint[], $54::text::boolean[])`)

/**
 * Stores a post in one statement. Resolves to the number of distinct valid containers, including minutes that are
 * stored already. Skipped containers are counted and logged. With 0 days of history nothing is stored. Throws 413 for
 * too many containers.
 */
export async function takeMinutes(
  { db, rejections, config }: Pick<Deps, 'db' | 'rejections' | 'config'>,
  post: Minutes,
): Promise<number> {
  const { containers } = post
  checkContainers(containers)
  if (config.computeHistoryRetentionDays === 0) return 0
  const faults: Partial<Record<Fault, number>> = {}
  const { rows, pairs } = await rowsOf(containers, faults)
  const accepted = rows.length
  if (accepted > 0) await write(db, post, [...(await rows.literals()), ...(await pairs.literals())])
  rejections.note(ROUTE, faults, 'minutes of compute were skipped, counted by the field at fault')
  return accepted
}

interface Rows {
  readonly rows: Columns
  readonly pairs: Columns
}

/**
 * Returns each container once: the last one wins. Clears each entry once it is read, because a post may have 16 MiB.
 */
async function rowsOf(containers: unknown[], faults: Partial<Record<Fault, number>>): Promise<Rows> {
  const note = (fault: Fault, entries: number) => {
    if (entries > 0) faults[fault] = (faults[fault] ?? 0) + entries
  }
  const rows = new Columns(COLUMNS)
  const culprits: (readonly Culprit[])[] = []
  const places = new Map<string, number>()
  const slice = new Slice()
  for (let i = 0; i < containers.length; i++) {
    const container = containerOf(containers[i])
    containers[i] = null
    if (typeof container === 'string') note(container, 1)
    else {
      const place = places.get(container.uid) ?? rows.length
      places.set(container.uid, place)
      rows.set(place, rowOf(container))
      const { kept, left } = heaviest(container.blame)
      culprits[place] = kept
      note('blame', left)
    }
    if (slice.isOver) await slice.next()
  }
  return { rows, pairs: await pairsOf(culprits) }
}

const rowOf = ({ names, cpu, memory, runq }: Container): Cell[] => [
  ...names,
  ...gaugeOf(cpu.usage_millis, fraction),
  ...cellsOf(CPU_COUNTS, cpu),
  ...pressuresOf(cpu),
  ...gaugeOf(memory.current, count),
  ...gaugeOf(memory.working_set, count),
  ...cellsOf(MEMORY_LIMITS, memory),
  ...pressuresOf(memory),
  ...cellsOf(MEMORY_COUNTS, memory),
  ...cellsOf(RUNQ_COUNTS, runq),
  histogram(runq),
]

function gaugeOf(value: unknown, read: (value: unknown) => number): Cell[] {
  const { avg, max, last } = fieldsOf(value)
  return [read(avg), read(max), read(last)]
}

function pressuresOf(block: Fields): Cell[] {
  const [some, full] = [fieldsOf(block.psi_some10), fieldsOf(block.psi_full10)]
  return [fraction(some.avg), fraction(some.max), fraction(full.avg), fraction(full.max)]
}

/** Returns all buckets, or null without a histogram. */
function histogram(runq: Fields | null): Cell {
  if (!Array.isArray(runq?.hist) || runq.hist.length === 0) return NULL
  const { hist } = runq as { hist: unknown[] }
  return quoted(`{${Array.from({ length: BUCKETS }, (_, bucket) => count(hist[bucket])).join(',')}}`)
}

/**
 * Keeps the culprits that have a kind and a wait, at most the ones with the longest waits. `left` counts invalid
 * entries and those beyond the limit.
 */
function heaviest(sent: unknown): { kept: readonly Culprit[]; left: number } {
  if (!Array.isArray(sent)) return { kept: [], left: 0 }
  const read = sent.map(culpritOf)
  const told = read.filter((culprit) => culprit !== null)
  const found = told.filter(({ kind, waitNs }) => kind !== '' && waitNs > 0)
  if (found.length <= MAX_CULPRITS) return { kept: found, left: read.length - told.length }
  found.sort((a, b) => b.waitNs - a.waitNs)
  return { kept: found.slice(0, MAX_CULPRITS), left: read.length - told.length + found.length - MAX_CULPRITS }
}

/**
 * Pairs refer to their victim by its place, which counts from 1 in the database. The longest waits of a victim are
 * flagged.
 */
async function pairsOf(culprits: readonly (readonly Culprit[])[]): Promise<Columns> {
  const pairs = new Columns(PAIR_COLUMNS)
  const slice = new Slice()
  for (const [place, those] of culprits.entries()) {
    const heaviestNs = those.reduce((most, { waitNs }) => Math.max(most, waitNs), 0)
    for (const { cgroupId, kind, ref, containerUid, count, waitNs } of those)
      pairs.set(pairs.length, [
        place + 1,
        cgroupId,
        quoted(kind),
        quoted(ref),
        containerUid === null ? NULL : quoted(containerUid),
        count,
        waitNs,
        waitNs === heaviestNs ? 't' : 'f',
      ])
    if (slice.isOver) await slice.next()
  }
  return pairs
}

async function write(db: Database, { node, ts, resolution_secs }: Minutes, columns: readonly string[]): Promise<void> {
  await db.ingest((sql) => store(sql, node, ts, resolution_secs, ...columns))
}
