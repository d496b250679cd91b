import { listing } from '../list/listing.ts'
import { cpuColumn, delayColumn, memoryColumn, percentColumn, shareColumn } from '../output/units.ts'

interface Container {
  readonly namespace: string
  readonly pod_name: string
  readonly container: string
  readonly node: string
  readonly ts: string
  readonly cpu_usage_millis: number
  readonly cpu_request_millis: number | null
  readonly cpu_limit_millis: number | null
  readonly cpu_nr_periods: number
  readonly cpu_nr_throttled: number
  readonly cpu_psi_some10: number
  readonly mem_working_set: number
  readonly mem_request: number | null
  readonly mem_limit: number | null
  readonly mem_psi_some10: number
  readonly mem_oom_kill: number
  readonly runq_p99_us: number | null
}

/** The most containers that the broker lists. */
const MAX_CONTAINERS = 5_000

/** So near to its limit, a container is about to be killed. */
const NEAR_LIMIT = 0.9

const isNearLimit = ({ mem_working_set: used, mem_limit: limit }: Container): boolean =>
  limit !== null && used >= limit * NEAR_LIMIT

export const usage = listing<{ containers: readonly Container[]; nodes: readonly unknown[] }, Container>({
  route: '/compute/latest',
  rowsOf: ({ containers }) => containers,
  columns: [
    { header: 'POD', of: ({ pod_name }) => pod_name },
    { header: 'CONTAINER', of: ({ container }) => container },
    cpuColumn('CPU', ({ cpu_usage_millis }) => cpu_usage_millis),
    cpuColumn('CPU REQUEST', ({ cpu_request_millis }) => cpu_request_millis),
    cpuColumn('CPU LIMIT', ({ cpu_limit_millis }) => cpu_limit_millis),
    memoryColumn('MEMORY', ({ mem_working_set }) => mem_working_set, {
      colourOf: (one) => (isNearLimit(one) ? 'red' : null),
    }),
    memoryColumn('MEMORY REQUEST', ({ mem_request }) => mem_request),
    memoryColumn('MEMORY LIMIT', ({ mem_limit }) => mem_limit),
    shareColumn('THROTTLED', ({ cpu_nr_periods: periods, cpu_nr_throttled: throttled }) =>
      periods === 0 ? null : throttled / periods,
    ),
    {
      header: 'OOM KILLS',
      of: ({ mem_oom_kill }) => mem_oom_kill,
      colourOf: ({ mem_oom_kill }) => (mem_oom_kill > 0 ? 'red' : null),
    },
    percentColumn('CPU PRESSURE', ({ cpu_psi_some10 }) => cpu_psi_some10, { isWide: true }),
    percentColumn('MEMORY PRESSURE', ({ mem_psi_some10 }) => mem_psi_some10, { isWide: true }),
    delayColumn('RUN QUEUE P99', ({ runq_p99_us }) => runq_p99_us, { isWide: true }),
    { header: 'NODE', of: ({ node }) => node, isWide: true },
    { header: 'SAMPLED', of: ({ ts }) => ts, isTime: true, isWide: true },
  ],
  nameOf: ({ namespace, pod_name, container }) => `${namespace}/${pod_name}/${container}`,
  said: ({ containers: { length } }) =>
    length === 0
      ? ['no container has reported lately: see ctb nodes']
      : length < MAX_CONTAINERS
        ? []
        : [`the broker lists ${MAX_CONTAINERS} containers at most: narrow it with --kind or --workload`],
  brief: 'Show what live containers use of CPU and memory, against their requests and limits',
  description: ['MEMORY is the working set. THROTTLED is the part of the periods of the CPU limit in the last sample.'],
})
