/** Reads how a workload used CPU and memory (docs/contract.md#sizing-of-workloads). */
import { fixed, type Gate } from '../../db/index.ts'
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

const READ = fixed<[{ usage: Usage }]>(`
  select workload_usage($1::text, $2::text, $3::text, $4::integer, ${MAX_PODS}, ${MAX_CONTAINERS},
                        ${MAX_EXACT_MINUTES}) as usage`)

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
  const [row] = await gate((sql) => READ(sql, namespace, kind, name, days))
  const { usage } = row!
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
