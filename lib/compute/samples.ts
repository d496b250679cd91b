/** Stores the latest sample of a node and of each of its containers (docs/contract.md#compute). */
import { z } from 'zod'
import { type Database, fixed } from '../db/index.ts'
import { Slice } from '../event-loop/slices.ts'
import type { Deps } from '../http/route.ts'
import { documentedAs } from '../openapi/declare.ts'
import { trimmedBlame } from './blame.ts'
import { checkContainers, envelope, intervalMs } from './envelope.ts'
import { type Cell, Columns } from './literal.ts'
import {
  type Container,
  CPU_COUNTS,
  cellsOf,
  containerOf,
  count,
  countSchema,
  type Fault,
  type Fields,
  fieldsOf,
  fraction,
  limit,
  MEMORY_COUNTS,
  MEMORY_LIMITS,
  RUNQ_COUNTS,
  shapeOf,
} from './reading.ts'
import { shownContainer } from './shown.ts'

const ROUTE = '/pod/compute/batch'

const pressure = { psi_some10: countSchema().describe('Percent.'), psi_full10: countSchema().describe('Percent.') }
const container = shownContainer(
  z.object({ usage_usec: countSchema(), ...shapeOf(CPU_COUNTS), ...pressure }),
  z.object({
    current: countSchema(),
    working_set: countSchema(),
    ...shapeOf(MEMORY_LIMITS),
    ...shapeOf(MEMORY_COUNTS),
    ...pressure,
  }),
  'The heaviest five are kept, as far as their JSON has 1024 bytes; the others are counted.',
)

const optional = (json: Readonly<Record<string, unknown>>) => documentedAs(z.unknown().optional(), json)
const number = (description: string) => optional({ type: 'number', minimum: 0, description })
const flag = (usual: boolean, description: string) => optional({ type: 'boolean', default: usual, description })
const numbers = (names: readonly string[], description: string) =>
  optional({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'number', minimum: 0 }])),
    description,
  })

/** The body of a post. Agents repeat a post until it is accepted, so only a broken envelope is refused. */
export const Samples = z
  .object({
    ...envelope(container),
    interval_ms: intervalMs,
    ctxt_per_sec: number('Context switches per second.'),
    compute_enabled: flag(true, 'Whether the agent samples containers.'),
    compute_supported: flag(true, 'Whether the node lets it.'),
    contention_loaded: flag(false, 'Whether the scheduler probe is loaded.'),
    node_pressure: numbers(['cpu_some10', 'cpu_full10', 'mem_some10', 'mem_full10'], 'Percent.'),
    node_capacity: numbers(['cpu_cores', 'memory_bytes'], 'What the node has.'),
    bpf_occupancy: numbers(
      ['runq_enqueued', 'runq_hist', 'pair', 'hist_update_failures', 'pair_update_failures'],
      'Entries in the maps of the probe.',
    ),
    unknown_blame_share: optional({
      type: 'number',
      minimum: 0,
      maximum: 1,
      description: 'Of all waits, those that nobody is known to have caused.',
    }),
  })
  .meta({ id: 'ComputeSamples' })
export type Samples = z.output<typeof Samples>

/** Array parameters of `store_samples`. */
const COLUMNS = 36

const store = fixed(`
  select store_samples(
    $1::text::json,
    $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::text[], $7::text::bigint[],
    $8::text::float8[], $9::text::bigint[], $10::text::bigint[], $11::text::bigint[], $12::text::bigint[],
    $13::text::bigint[],
    $14::text::bigint[], $15::text::bigint[], $16::text::float8[], $17::text::float8[],
    $18::text::bigint[], $19::text::bigint[], $20::text::bigint[], $21::text::bigint[], $22::text::float8[],
    $23::text::float8[],
    $24::text::bigint[], $25::text::bigint[], $26::text::bigint[], $27::text::bigint[], $28::text::bigint[],
    $29::text::bigint[], $30::text::bigint[], $31::text::bigint[], $32::text::bigint[], $33::text::bigint[],
    $34::text::bigint[],
    $35::text::text[], $36::text::bigint[], $37::text::bigint[])`)

/**
 * Stores a post in one statement. Resolves to the number of distinct valid containers; skipped ones are counted and
 * logged. Throws 413 for too many containers.
 */
export async function takeSamples({ db, rejections }: Pick<Deps, 'db' | 'rejections'>, post: Samples): Promise<number> {
  const { containers } = post
  checkContainers(containers)
  const faults: Partial<Record<Fault, number>> = {}
  const rows = await rowsOf(containers, post.interval_ms, faults)
  const accepted = rows.length
  await write(db, nodeOf(post), await rows.literals())
  rejections.note(ROUTE, faults, 'compute samples were skipped, counted by the field at fault')
  return accepted
}

/**
 * Returns each container once: the last one wins. Clears each entry once it is read, because a post may have 16 MiB.
 */
async function rowsOf(
  containers: unknown[],
  interval: number,
  faults: Partial<Record<Fault, number>>,
): Promise<Columns> {
  const note = (fault: Fault, entries: number) => {
    faults[fault] = (faults[fault] ?? 0) + entries
  }
  const rows = new Columns(COLUMNS)
  const places = new Map<string, number>()
  const slice = new Slice()
  for (let i = 0; i < containers.length; i++) {
    const container = containerOf(containers[i])
    containers[i] = null
    if (typeof container === 'string') note(container, 1)
    else {
      const blame = trimmedBlame(container.blame)
      if (blame.bad > 0) note('blame', blame.bad)
      const place = places.get(container.uid) ?? rows.length
      places.set(container.uid, place)
      rows.set(place, [...gauges(container, interval), blame.json, blame.omitted, blame.omittedWaitNs])
    }
    if (slice.isOver) await slice.next()
  }
  return rows
}

const gauges = ({ names, cgroupId, cpu, memory, runq }: Container, interval: number): Cell[] => [
  ...names,
  cgroupId,
  fraction(count(cpu.usage_usec) / interval),
  ...cellsOf(CPU_COUNTS, cpu),
  ...pressures(cpu),
  count(memory.current),
  count(memory.working_set),
  ...cellsOf(MEMORY_LIMITS, memory),
  ...pressures(memory),
  ...cellsOf(MEMORY_COUNTS, memory),
  ...cellsOf(RUNQ_COUNTS, runq),
]

const pressures = (block: Fields): Cell[] => [fraction(block.psi_some10), fraction(block.psi_full10)]

/** The row of the node as JSON; its keys are the names of the columns. */
function nodeOf(post: Samples): string {
  const [pressure, capacity, maps] = [
    fieldsOf(post.node_pressure),
    fieldsOf(post.node_capacity),
    fieldsOf(post.bpf_occupancy),
  ]
  const isSaid = (value: unknown, usual: boolean) => (typeof value === 'boolean' ? value : usual)
  const failures = (value: unknown) => {
    const known = limit(value)
    return typeof known === 'number' ? known : null
  }
  return JSON.stringify({
    node: post.node,
    ts: post.ts,
    interval_ms: post.interval_ms,
    ctxt_per_sec: fraction(post.ctxt_per_sec),
    compute_enabled: isSaid(post.compute_enabled, true),
    compute_supported: isSaid(post.compute_supported, true),
    contention_loaded: isSaid(post.contention_loaded, false),
    cpu_some10: fraction(pressure.cpu_some10),
    cpu_full10: fraction(pressure.cpu_full10),
    mem_some10: fraction(pressure.mem_some10),
    mem_full10: fraction(pressure.mem_full10),
    cpu_cores: fraction(capacity.cpu_cores),
    memory_bytes: count(capacity.memory_bytes),
    bpf_runq_enqueued: count(maps.runq_enqueued),
    bpf_runq_hist: count(maps.runq_hist),
    bpf_pair: count(maps.pair),
    unknown_blame_share: fraction(post.unknown_blame_share, 1),
    bpf_hist_update_failures: failures(maps.hist_update_failures),
    bpf_pair_update_failures: failures(maps.pair_update_failures),
  })
}

async function write(db: Database, node: string, columns: readonly string[]): Promise<void> {
  await db.ingest((sql) => store(sql, node, ...columns))
}
