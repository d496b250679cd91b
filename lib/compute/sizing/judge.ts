/** Compares what a container used with its requests and limits (docs/contract.md#sizing-of-workloads). */
import { type Container, type Fit, MAX_SETTINGS, MIN_MINUTES, OVER_FACTOR } from './record.ts'

const MINUTE_SECS = 60

/** The usage under one combination of requests and limits, as read. */
export interface SettingRow {
  readonly cpuRequestMillis: number | null
  readonly cpuLimitMillis: number | null
  readonly memRequestBytes: number | null
  readonly memLimitBytes: number | null
  readonly firstSeen: string
  readonly lastSeen: string
  readonly secs: number
  readonly pods: number
  readonly cpuMaxMillis: number
  readonly memMaxBytes: number
  readonly periods: number
  readonly throttled: number
  readonly oomKills: number
}

type Quantiles = readonly [p50: number, p95: number, p99: number]

export interface ContainerRow {
  readonly container: string
  readonly pods: number
  readonly spanSecs: number
  readonly cpu: Quantiles
  readonly memory: Quantiles
  /** The newest first; at least one. */
  readonly settings: readonly SettingRow[]
}

const ratioOf = ({ periods, throttled }: Pick<SettingRow, 'periods' | 'throttled'>) =>
  periods > 0 ? Math.min(throttled / periods, 1) : null
const most = (values: readonly number[]) => values.reduce((one, other) => Math.max(one, other))
const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0)

/** `maxError`: the share by which the percentiles may be above the exact ones. */
export function judgeContainer(row: ContainerRow, maxError: number): Container {
  const { settings } = row
  const secs = sum(settings.map((one) => one.secs))
  const minutes = secs / MINUTE_SECS
  const isEnough = minutes >= MIN_MINUTES
  const current = settings[0]!
  const [maxMillis, maxBytes] = [
    most(settings.map(({ cpuMaxMillis }) => cpuMaxMillis)),
    most(settings.map(({ memMaxBytes }) => memMaxBytes)),
  ]
  const total = {
    periods: sum(settings.map(({ periods }) => periods)),
    throttled: sum(settings.map(({ throttled }) => throttled)),
    oomKills: sum(settings.map(({ oomKills }) => oomKills)),
  }
  // The bound of a bucket may be above the largest value in it.
  const [cpu, memory] = [
    row.cpu.map((one) => Math.min(one, maxMillis)),
    row.memory.map((one) => Math.min(one, maxBytes)),
  ]
  const shown = (value: number) => (isEnough ? value : null)
  const fit: Fit[] = [
    ...requestFit('cpu', current.cpuRequestMillis, cpu[1]!, maxError),
    ...limitFit('cpu', current.cpuLimitMillis, maxMillis),
    ...throttledFit(current),
    ...requestFit('memory', current.memRequestBytes, memory[1]!, maxError),
    ...limitFit('memory', current.memLimitBytes, maxBytes),
    ...(total.oomKills > 0
      ? [
          {
            resource: 'memory',
            rule: 'oomKilled',
            configured: current.memLimitBytes,
            observed: total.oomKills,
          } as const,
        ]
      : []),
  ]
  return {
    container: row.container,
    pods: row.pods,
    minutes,
    observedShare: Math.min(secs / row.spanSecs, 1),
    firstSeen: settings.map(({ firstSeen }) => firstSeen).sort()[0]!,
    lastSeen: current.lastSeen,
    current: limitsOf(current),
    cpu: {
      p50Millis: shown(cpu[0]!),
      p95Millis: shown(cpu[1]!),
      p99Millis: shown(cpu[2]!),
      maxMillis,
      throttledRatio: ratioOf(total),
    },
    memory: {
      p50Bytes: shown(memory[0]!),
      p95Bytes: shown(memory[1]!),
      p99Bytes: shown(memory[2]!),
      maxBytes,
      oomKills: total.oomKills,
    },
    settings: settings.slice(0, MAX_SETTINGS).map((one) => ({
      ...limitsOf(one),
      firstSeen: one.firstSeen,
      lastSeen: one.lastSeen,
      minutes: one.secs / MINUTE_SECS,
      pods: one.pods,
      cpuMaxMillis: one.cpuMaxMillis,
      memMaxBytes: one.memMaxBytes,
      throttledRatio: ratioOf(one),
      oomKills: one.oomKills,
    })),
    settingsTruncated: settings.length > MAX_SETTINGS,
    fit: isEnough ? fit : null,
    reason: isEnough ? null : 'too_few_minutes',
  }
}

const limitsOf = ({ cpuRequestMillis, cpuLimitMillis, memRequestBytes, memLimitBytes }: SettingRow) => ({
  cpuRequestMillis,
  cpuLimitMillis,
  memRequestBytes,
  memLimitBytes,
})

/** A rule holds only if it holds for every value that the p95 may have. */
function requestFit(resource: Fit['resource'], request: number | null, p95: number, maxError: number): Fit[] {
  const found = (rule: Fit['rule']): Fit[] => [{ resource, rule, configured: request, observed: p95 }]
  if (request === null) return found('noRequest')
  if (request * (1 + maxError) < p95) return found('requestUnderP95')
  return request >= OVER_FACTOR * p95 ? found('requestOverP95') : []
}

function limitFit(resource: Fit['resource'], limit: number | null, max: number): Fit[] {
  // A container without a CPU limit takes what is idle; one without a memory limit can take its node.
  if (limit === null)
    return resource === 'memory' ? [{ resource, rule: 'noLimit', configured: null, observed: max }] : []
  return limit < max ? [{ resource, rule: 'limitUnderMax', configured: limit, observed: max }] : []
}

/** Under the present limit only: an earlier one may have been lower. */
function throttledFit(current: SettingRow): Fit[] {
  const ratio = ratioOf(current)
  if (ratio === null || ratio === 0) return []
  return [{ resource: 'cpu', rule: 'throttled', configured: current.cpuLimitMillis, observed: ratio }]
}
