/** CPU and memory use of a workload as rows, and the sizing rules in words. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { bytesText } from '../../../parts/bytes.ts'
import { counted } from '../../../parts/plural.ts'
import { millisText, percentText } from './series.ts'

export type SizingAnswer = JsonAnswer<'/compute/workloads/{namespace}/{kind}/{name}'>
type Container = SizingAnswer['containers'][number]
type Fit = NonNullable<Container['fit']>[number]

export interface SizingRow {
  readonly container: string
  readonly resource: 'cpu' | 'memory'
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number
  readonly request: number | null
  readonly limit: number | null
  readonly fit: readonly Fit[] | null
  readonly pods: number
  readonly minutes: number
}

export const TEXTS = { cpu: millisText, memory: bytesText } as const

/** Each container has one row for CPU and one for memory, because their units differ. */
export function sizingRows({ containers }: SizingAnswer): readonly SizingRow[] {
  return containers.flatMap(({ container, current, cpu, memory, fit, pods, minutes }): SizingRow[] => {
    const rules = (resource: Fit['resource']) => fit?.filter((one) => one.resource === resource) ?? null
    const same = { container, pods, minutes }
    return [
      {
        ...{ ...same, resource: 'cpu', p50: cpu.p50Millis, p95: cpu.p95Millis, p99: cpu.p99Millis, max: cpu.maxMillis },
        ...{ request: current.cpuRequestMillis, limit: current.cpuLimitMillis, fit: rules('cpu') },
      },
      {
        ...{ ...same, resource: 'memory', p50: memory.p50Bytes, p95: memory.p95Bytes, p99: memory.p99Bytes },
        ...{ max: memory.maxBytes, request: current.memRequestBytes, limit: current.memLimitBytes },
        ...{ fit: rules('memory') },
      },
    ]
  })
}

export function fitText({ rule, resource, observed }: Fit): string {
  const text = TEXTS[resource]
  switch (rule) {
    case 'noRequest':
      return `no request; the p95 is ${text(observed)}`
    case 'requestUnderP95':
      return `the request is below the p95 of ${text(observed)}`
    case 'requestOverP95':
      return `the request is twice the p95 of ${text(observed)} or more: half of it is idle 95 % of the time`
    case 'noLimit':
      return `no limit; the maximum is ${text(observed)}`
    case 'limitUnderMax':
      return `the limit is below the maximum of ${text(observed)}, which may be under other settings`
    case 'throttled':
      return `throttled in ${percentText(observed * 100)} of the periods of its limit`
    case 'oomKilled':
      return `memory ran out ${counted(observed, 'time')}`
  }
}

/** The limits of the numbers, in words. */
export function caveatsOf({ pods, containers, minMinutes, maxRelativeError, truncated, days }: SizingAnswer): string[] {
  return [
    ...(pods.liveUnobserved > 0
      ? [`${pods.liveUnobserved} of ${counted(pods.live, 'live pod')} without any minute in ${counted(days, 'day')}`]
      : []),
    ...containers.flatMap(({ container, reason, minutes, observedShare }) => [
      ...(reason === null
        ? []
        : [`${container}: percentiles need ${counted(minMinutes, 'observed minute')}, there are ${minutes}`]),
      ...(observedShare >= 1
        ? []
        : [`${container}: observed ${percentText(observedShare * 100)} of the time; a gap is in no number`]),
    ]),
    ...(maxRelativeError > 0 ? [`percentiles are at most ${percentText(maxRelativeError * 100)} too high`] : []),
    ...(truncated ? ['the workload has more pods or containers than the broker reads'] : []),
  ]
}
