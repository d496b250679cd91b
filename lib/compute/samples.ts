/** Stores the latest sample of a node and of each of its containers (docs/contract.md#compute). */
import { z } from 'zod'
import { fixed } from '../db/index.ts'
import { EntrySchema, field } from '../entries/index.ts'
import type { Deps } from '../http/route.ts'
import { blame, shortened } from './blame.ts'
import { cpuCounts, identity, memoryCounts, memoryLimits, runqCounts } from './container.ts'
import { checkContainers, envelope, intervalMs, parseContainers } from './envelope.ts'
import {
  block,
  cellsOf,
  columnsOf,
  count,
  decimal,
  fraction,
  histogram,
  id,
  ignored,
  limit,
  NUMBER,
  nullableBlock,
  parametersOf,
  requiredBlock,
  storedIn,
} from './fields.ts'
import { Columns } from './literal.ts'

const ROUTE = '/pod/compute/batch'

const percent = fraction().describe('Percent.')
const pressures = { psi_some10: percent, psi_full10: percent }

/** The gauges of a container, in the order of the parameters of `store_samples`. */
export const gauges = {
  cpu: requiredBlock('cpu_', {
    usage_usec: storedIn(count(), { type: 'float8', answer: decimal, name: 'usage_millis' }),
    ...cpuCounts,
    ...pressures,
  }),
  memory: requiredBlock('mem_', {
    current: count(),
    working_set: count(),
    ...memoryLimits,
    ...pressures,
    ...memoryCounts,
  }),
  runq: nullableBlock({ ...runqCounts, hist: ignored(histogram.optional()) }).describe('Null without a probe.'),
}

const Sample = new EntrySchema(
  z.object({
    ...identity,
    cgroup_id: id,
    ...gauges,
    blame: blame.describe('The heaviest five are kept, as far as their JSON has 1024 bytes; the others are counted.'),
  }),
)

const flag = (usual: boolean, description: string) =>
  storedIn(
    field({ type: 'boolean', default: usual, description }, (value) => (typeof value === 'boolean' ? value : usual)),
    { type: 'boolean', answer: z.boolean() },
  )
const share = { ...NUMBER, maximum: 1, description: 'The share of all waits whose cause is not known.' }

/** The values of a node. Each is stored in the column of its name. */
export const nodeFields = {
  ctxt_per_sec: fraction(NUMBER).describe('Context switches per second.'),
  compute_enabled: flag(true, 'Whether the agent samples containers.'),
  compute_supported: flag(true, 'Whether the node lets it.'),
  contention_loaded: flag(false, 'Whether the scheduler probe is loaded.'),
  node_pressure: block(
    {
      cpu_some10: fraction(NUMBER),
      cpu_full10: fraction(NUMBER),
      mem_some10: fraction(NUMBER),
      mem_full10: fraction(NUMBER),
    },
    '',
  ).describe('Percent.'),
  node_capacity: block({ cpu_cores: fraction(NUMBER), memory_bytes: count(0, NUMBER) }, '').describe(
    'The capacity of the node.',
  ),
  bpf_occupancy: block(
    {
      runq_enqueued: count(0, NUMBER),
      runq_hist: count(0, NUMBER),
      pair: count(0, NUMBER),
      hist_update_failures: limit(NUMBER),
      pair_update_failures: limit(NUMBER),
    },
    'bpf_',
  ).describe('Entries in the maps of the probe.'),
  unknown_blame_share: fraction(share, 1),
}

/** The body of a post. Agents repeat a post until it is accepted, so only a broken envelope is refused. */
export const Samples = z
  .object({ ...envelope(Sample), interval_ms: intervalMs, ...nodeFields })
  .meta({ id: 'ComputeSamples' })
export type Samples = z.output<typeof Samples>

const CONTAINER = { ...identity, cgroup_id: id, ...gauges }
const WIDTH = columnsOf(CONTAINER).length
const BLAME = 2 + WIDTH

const store = fixed(`
  select store_samples($1::text::json, ${parametersOf(CONTAINER, 2)},
                       $${BLAME}::text::text[], $${BLAME + 1}::text::bigint[], $${BLAME + 2}::text::bigint[])`)

/**
 * Stores a post in one statement. Resolves to the number of distinct valid containers; skipped ones are counted and
 * logged. Throws 413 for too many containers.
 */
export async function takeSamples(
  { db, rejections }: Pick<Deps, 'db' | 'rejections'>,
  { containers, ...sent }: Samples,
): Promise<number> {
  checkContainers(containers)
  const rows = new Columns(WIDTH + 3)
  const dropped = await parseContainers(Sample, containers, (container, { culprits, bad }, place) => {
    const { json, omitted, omittedWaitNs } = shortened(culprits)
    container.cpu.usage_usec /= sent.interval_ms
    const cells = cellsOf(container)
    cells.push(json, omitted, omittedWaitNs)
    rows.set(place, cells)
    return bad
  })
  const accepted = rows.length
  const columns = await rows.literals()
  await db.ingest((sql) => store(sql, rowOf(sent), ...columns))
  rejections.note(ROUTE, dropped, 'compute samples were skipped, counted by the field at fault')
  return accepted
}

/** The row of the node as JSON; its keys are the names of the columns. */
function rowOf({ node, ts, interval_ms, ...values }: Omit<Samples, 'containers'>): string {
  const cells = cellsOf(values)
  const columns = columnsOf(nodeFields).map(({ name }, i) => [name, cells[i]])
  return JSON.stringify({ node, ts, interval_ms, ...Object.fromEntries(columns) })
}
