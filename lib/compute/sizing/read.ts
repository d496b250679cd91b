/** Reads how a workload used CPU and memory (docs/contract.md#sizing-of-workloads). */
import { fixed, type Gate } from '../../db/index.ts'
import { Slice } from '../../event-loop/slices.ts'
import { MINUTE_COLUMNS, NULL_CELL, unpack } from '../pack.ts'
import { type ContainerRow, judgeContainer } from './judge.ts'
import { MAX_ESTIMATE_ERROR, MAX_NAMES, MIN_MINUTES, type WorkloadSizing } from './record.ts'

/** Pods of a workload that are looked at, live ones first, then the newest. */
const MAX_PODS = 2_000
/** Containers of pods that are read, the newest. */
const MAX_CONTAINERS = 1_000
/** Up to so many minutes are read one by one, so that percentiles are exact: about 50 ms. */
const MAX_EXACT_MINUTES = 20_000

interface Usage {
  readonly since: string
  readonly until: string
  readonly isEstimate: boolean
  readonly truncated: boolean
  readonly pods: number
  readonly livePods: number
  readonly livePodsUnobserved: number
  readonly observedPods: number
  readonly containers: readonly ContainerRow[]
}

const READ = fixed<[{ usage: Usage | PackedMinutes }]>(`
  select workload_usage($1::text, $2::text, $3::text, $4::integer, ${MAX_PODS}, ${MAX_CONTAINERS},
                        ${MAX_EXACT_MINUTES}, $5::text::json) as usage`)

/** Packed minutes that the statement needs, with the revisions of all packs. */
interface PackedMinutes {
  readonly revisions: string
  readonly packs: readonly { readonly containerId: string; readonly resolutionSecs: string; readonly data: string }[]
}

/** The columns of minutes that the statement reads. */
const READ_COLUMNS = [
  ...['ts', 'cpu_usage_millis_avg', 'cpu_usage_millis_max', 'mem_working_set_max', 'cpu_request_millis'],
  ...['cpu_limit_millis', 'mem_request', 'mem_limit', 'cpu_nr_periods', 'cpu_nr_throttled', 'mem_oom_kill'],
]
/** The job may pack an hour between two statements, but hardly twice. */
const MAX_READS = 5

interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

/** The answer where no history is kept. */
export const withoutHistory = ({ namespace, kind, name }: Workload): WorkloadSizing => ({
  ...{ namespace, kind, name, days: 0, since: null, until: null, minMinutes: MIN_MINUTES, maxRelativeError: 0 },
  pods: { live: 0, liveUnobserved: 0, observed: 0 },
  containers: [],
  truncated: false,
  reason: 'history_disabled',
})

/** Reads the last `days` days of the calendar, with today. */
export async function readSizing(
  gate: Gate,
  { namespace, kind, name }: Workload,
  days: number,
): Promise<WorkloadSizing> {
  const usage = await readUsage(gate, { namespace, kind, name }, days)
  const maxRelativeError = usage.isEstimate ? MAX_ESTIMATE_ERROR : 0
  const containers = usage.containers.slice(0, MAX_NAMES).map((one) => judgeContainer(one, maxRelativeError))
  return {
    ...{
      namespace,
      kind,
      name,
      days,
      since: usage.since,
      until: usage.until,
      minMinutes: MIN_MINUTES,
      maxRelativeError,
    },
    pods: { live: usage.livePods, liveUnobserved: usage.livePodsUnobserved, observed: usage.observedPods },
    containers,
    truncated: usage.truncated || usage.containers.length > MAX_NAMES,
    reason: containers.length > 0 ? null : usage.pods === 0 ? 'unknown_workload' : 'no_samples',
  }
}

async function readUsage(gate: Gate, { namespace, kind, name }: Workload, days: number): Promise<Usage> {
  let packed: string | null = null
  for (let reads = 0; reads < MAX_READS; reads++) {
    const [row] = await gate((sql) => READ(sql, namespace, kind, name, days, packed))
    const { usage } = row!
    if (!('packs' in usage)) return usage
    packed = await unpacked(usage)
  }
  throw new Error('the packs of minutes changed with each read')
}

/** The parameter `packed` of `workload_usage`. */
async function unpacked({ revisions, packs }: PackedMinutes): Promise<string> {
  const slice = new Slice()
  const all: object[] = []
  for (const { containerId, resolutionSecs, data } of packs) {
    const cells = unpack(Buffer.from(data, 'base64'), MINUTE_COLUMNS)
    const columns = READ_COLUMNS.map((column) => {
      const values = cells[MINUTE_COLUMNS.indexOf(column)]!
      return [column, values.map((value) => (value === NULL_CELL ? null : value))]
    })
    all.push({ container_id: containerId, resolution_secs: resolutionSecs, ...Object.fromEntries(columns) })
    if (slice.isOver) await slice.next()
  }
  return JSON.stringify({ revisions, packs: all })
}
