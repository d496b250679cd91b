import { listing } from '../list/listing.ts'
import type { Column } from '../output/cell.ts'
import { counted } from '../output/lines.ts'
import { mebiText, millisText, percentText, shareColumn } from '../output/units.ts'

interface Fit {
  readonly resource: 'cpu' | 'memory'
  readonly rule: string
}

interface Sizing {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly days: number
  readonly minMinutes: number
  readonly maxRelativeError: number
  readonly pods: { readonly live: number; readonly liveUnobserved: number }
  readonly containers: readonly {
    readonly container: string
    readonly pods: number
    readonly minutes: number
    readonly observedShare: number
    readonly current: Readonly<
      Record<'cpuRequestMillis' | 'cpuLimitMillis' | 'memRequestBytes' | 'memLimitBytes', number | null>
    >
    readonly cpu: Readonly<Record<'p50Millis' | 'p95Millis' | 'p99Millis' | 'throttledRatio', number | null>> & {
      readonly maxMillis: number
    }
    readonly memory: Readonly<Record<'p50Bytes' | 'p95Bytes' | 'p99Bytes', number | null>> & {
      readonly maxBytes: number
      readonly oomKills: number
    }
    readonly fit: readonly Fit[] | null
    readonly reason: string | null
  }[]
  readonly truncated: boolean
  readonly reason: string | null
}

interface Row {
  readonly workload: string
  readonly container: string
  readonly resource: 'cpu' | 'memory'
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number
  readonly request: number | null
  readonly limit: number | null
  readonly throttledRatio: number | null
  readonly oomKills: number | null
  readonly fit: readonly string[] | null
  readonly observedShare: number
  readonly minutes: number
  readonly pods: number
}

const UNITS = { cpu: 'cpu_millis', memory: 'memory_bytes' } as const
const TEXTS = { cpu: millisText, memory: mebiText } as const

/** A row for the CPU of a container and one for its memory: their numbers have different units. */
const rowsOf = ({ namespace, kind, name, containers }: Sizing): readonly Row[] =>
  containers.flatMap(({ container, current, cpu, memory, fit, observedShare, minutes, pods }): Row[] => {
    const same = { workload: `${namespace}/${kind}/${name}`, container, observedShare, minutes, pods }
    const rules = (resource: Fit['resource']) =>
      fit?.filter((one) => one.resource === resource).map(({ rule }) => rule) ?? null
    return [
      {
        ...{ ...same, resource: 'cpu', p50: cpu.p50Millis, p95: cpu.p95Millis, p99: cpu.p99Millis, max: cpu.maxMillis },
        ...{ request: current.cpuRequestMillis, limit: current.cpuLimitMillis },
        ...{ throttledRatio: cpu.throttledRatio, oomKills: null, fit: rules('cpu') },
      },
      {
        ...{ ...same, resource: 'memory', max: memory.maxBytes },
        ...{ p50: memory.p50Bytes, p95: memory.p95Bytes, p99: memory.p99Bytes },
        ...{ request: current.memRequestBytes, limit: current.memLimitBytes },
        ...{ throttledRatio: null, oomKills: memory.oomKills, fit: rules('memory') },
      },
    ]
  })

const quantity = (header: string, of: (row: Row) => number | null): Column<Row> => ({
  ...{ header, of },
  shownOf: (row) => {
    const value = of(row)
    return value === null ? null : TEXTS[row.resource](value)
  },
})

function saidOf({ days, minMinutes, maxRelativeError, pods, containers, truncated, reason }: Sizing): string[] {
  return [
    ...(reason === null ? [] : [`no container: ${reason}`]),
    ...(pods.liveUnobserved === 0
      ? []
      : [`${pods.liveUnobserved} of ${counted(pods.live, 'live pod')} without any minute in ${counted(days, 'day')}`]),
    ...containers.flatMap((one) => [
      ...(one.reason === null
        ? []
        : [`${one.container}: ${one.reason}: ${one.minutes} of the ${minMinutes} minutes that percentiles need`]),
      ...(one.observedShare >= 1
        ? []
        : [`${one.container}: observed ${percentText(one.observedShare * 100)} of the time; a gap is in no figure`]),
    ]),
    ...(maxRelativeError === 0 ? [] : [`percentiles are at most ${percentText(maxRelativeError * 100)} too high`]),
    ...(truncated ? ['the workload has more pods or containers than the broker reads'] : []),
  ]
}

export const sizing = listing<Sizing, Row>({
  route: '/compute/workloads/{namespace}/{kind}/{name}',
  rowsOf,
  columns: [
    { header: 'CONTAINER', of: ({ container }) => container },
    { header: 'RESOURCE', of: ({ resource }) => UNITS[resource], shownOf: ({ resource }) => resource },
    quantity('P50', ({ p50 }) => p50),
    quantity('P95', ({ p95 }) => p95),
    quantity('P99', ({ p99 }) => p99),
    quantity('MAX', ({ max }) => max),
    quantity('REQUEST', ({ request }) => request),
    quantity('LIMIT', ({ limit }) => limit),
    shareColumn('THROTTLED', ({ throttledRatio }) => throttledRatio),
    { header: 'OOM KILLS', of: ({ oomKills }) => oomKills },
    { header: 'FIT', of: ({ fit }) => fit, colourOf: ({ fit }) => (fit !== null && fit.length > 0 ? 'yellow' : null) },
    shareColumn('OBSERVED', ({ observedShare }) => observedShare, { isWide: true }),
    { header: 'MINUTES', of: ({ minutes }) => minutes, isWide: true },
    { header: 'PODS', of: ({ pods }) => pods, isWide: true },
  ],
  nameOf: ({ workload }) => workload,
  said: saidOf,
  brief: 'Compare the requests and limits of a workload with what it used',
  description: [
    'Percentiles over all pods of the workload. FIT has the rules that hold, such as requestOverP95.',
    'As CSV a line has the numbers of cpu_millis or memory_bytes.',
  ],
})
