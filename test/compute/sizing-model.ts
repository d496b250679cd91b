/** A naive model of the size of a workload, from the minutes that were posted (docs/contract.md#sizing-of-workloads). */

export interface Settings {
  readonly cpuRequestMillis: number | null
  readonly cpuLimitMillis: number | null
  readonly memRequestBytes: number | null
  readonly memLimitBytes: number | null
}

/** A minute, or another length below 300 seconds, of a container of a pod. */
export interface Observed extends Settings {
  readonly pod: string
  readonly container: string
  /** Seconds since 1970. */
  readonly at: number
  readonly secs: number
  readonly cpuAvg: number
  readonly cpuMax: number
  readonly memMax: number
  readonly periods: number
  readonly throttled: number
  readonly oomKills: number
}

const DAY_SECS = 86_400
/** The largest error of an estimate, from the contract. */
export const ESTIMATE_ERROR = 0.0443

const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0)

/** The smallest value that at least `share` of the seconds do not exceed. */
export function percentile(rows: readonly Observed[], share: number, value: (row: Observed) => number): number {
  const total = sum(rows.map(({ secs }) => secs))
  let upto = 0
  for (const row of rows.toSorted((a, b) => value(a) - value(b))) {
    upto += row.secs
    if (upto >= share * total) return value(row)
  }
  throw new Error('no rows')
}

/** The minutes of the last `days` days of the calendar (UTC), with the one of `now` (seconds since 1970). */
export const inWindow = (rows: readonly Observed[], days: number, now: number): Observed[] => {
  const since = now - (now % DAY_SECS) - (days - 1) * DAY_SECS
  return rows.filter(({ at }) => at >= since)
}

export function byContainer(rows: readonly Observed[]): Map<string, Observed[]> {
  const names = [...new Set(rows.map(({ container }) => container))].sort()
  return new Map(names.map((name) => [name, rows.filter(({ container }) => container === name)]))
}

/** The facts of a container name, but for percentiles. */
export function totalsOf(rows: readonly Observed[]) {
  const periods = sum(rows.map((row) => row.periods))
  const spans = [...new Set(rows.map(({ pod }) => pod))].map((pod) => {
    const own = rows.filter((row) => row.pod === pod)
    const times = own.map(({ at }) => at)
    return Math.max(sum(own.map(({ secs }) => secs)), Math.max(...times) - Math.min(...times) + 60)
  })
  const secs = sum(rows.map((row) => row.secs))
  return {
    pods: spans.length,
    minutes: secs / 60,
    observedShare: Math.min(1, secs / sum(spans)),
    maxMillis: Math.max(...rows.map(({ cpuMax }) => cpuMax)),
    maxBytes: Math.max(...rows.map(({ memMax }) => memMax)),
    throttledRatio: periods === 0 ? null : Math.min(1, sum(rows.map((row) => row.throttled)) / periods),
    oomKills: sum(rows.map((row) => row.oomKills)),
  }
}

const KEYS = ['cpuRequestMillis', 'cpuLimitMillis', 'memRequestBytes', 'memLimitBytes'] as const
const settingsOf = (row: Settings): Settings =>
  Object.fromEntries(KEYS.map((key) => [key, row[key]])) as unknown as Settings

/** The minutes of each combination of requests and limits. */
export function bySettings(rows: readonly Observed[]): Map<string, Observed[]> {
  const groups = new Map<string, Observed[]>()
  for (const row of rows) {
    const key = JSON.stringify(settingsOf(row))
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  return groups
}
