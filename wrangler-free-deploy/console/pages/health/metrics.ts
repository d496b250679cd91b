/** Parses the text format of Prometheus 0.0.4, as far as the health page needs it. */

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
}

/** Samples by the name of their metric. */
export class Metrics {
  readonly #samples: ReadonlyMap<string, readonly Sample[]>

  constructor(samples: ReadonlyMap<string, readonly Sample[]>) {
    this.#samples = samples
  }

  all(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? []
  }

  /** The sum of all samples with these labels; null if there is none. */
  sum(name: string, labels: Labels = {}): number | null {
    const found = this.all(name).filter((one) => hasLabels(one, labels))
    return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0)
  }

  /** The values of a label, in the order of the text. */
  values(name: string, label: string): readonly string[] {
    return [...new Set(this.all(name).flatMap(({ labels }) => labels[label] ?? []))]
  }
}

const hasLabels = ({ labels }: Sample, wanted: Labels) =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value)

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const LABEL = /\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?/y

/** Parses samples whose name passes `isWanted`. Buckets of histograms are most of the text and are not needed here. */
export function parseMetrics(text: string, isWanted: (name: string) => boolean): Metrics {
  const samples = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    const name = NAME.exec(line)?.[0]
    if (name === undefined || !isWanted(name)) continue
    const sample = sampleOf(line, name.length)
    if (sample === null) continue
    const list = samples.get(name)
    if (list === undefined) samples.set(name, [sample])
    else list.push(sample)
  }
  return new Metrics(samples)
}

/** Null for a line that is not in the format. */
function sampleOf(line: string, from: number): Sample | null {
  const labels: Record<string, string> = {}
  let at = from
  if (line[at] === '{') {
    LABEL.lastIndex = ++at
    for (let match = LABEL.exec(line); match !== null; match = LABEL.exec(line)) {
      labels[match[1]!] = unescaped(match[2]!)
      at = LABEL.lastIndex
    }
    if (line[at] !== '}') return null
    at++
  }
  // A timestamp may follow the value.
  const value = numberOf(line.slice(at).trim().split(/\s+/)[0] ?? '')
  return value === null ? null : { labels, value }
}

const unescaped = (text: string) => text.replace(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one))

function numberOf(text: string): number | null {
  if (text === 'NaN') return Number.NaN
  if (/^[+-]?Inf$/.test(text)) return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return /^[+-]?[\d.]+([eE][+-]?\d+)?$/.test(text) ? Number(text) : null
}

/** Metrics with the time of their scrape, by the clock of this browser. */
export interface Scrape {
  readonly metrics: Metrics
  readonly atMs: number
}

/** Counters restart with the process. Another start time means another replica or a restart. */
export function isSameProcess(one: Scrape, other: Scrape): boolean {
  const started = ({ metrics }: Scrape) => metrics.sum('process_start_time_seconds')
  return started(one) !== null && started(one) === started(other)
}

/** Increase of a counter per second between two scrapes of a process; null if it cannot be computed. */
export function rateOf(before: Scrape | null, now: Scrape, name: string, labels: Labels = {}): number | null {
  if (before === null || !isSameProcess(before, now)) return null
  const seconds = (now.atMs - before.atMs) / 1_000
  const value = now.metrics.sum(name, labels)
  if (seconds <= 0 || value === null) return null
  // A series that was absent before began at 0.
  const grown = value - (before.metrics.sum(name, labels) ?? 0)
  return grown < 0 ? null : grown / seconds
}
