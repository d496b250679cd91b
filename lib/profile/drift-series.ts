/** The gauge of drift by workload and type (docs/contract.md#workload-profiles). */
import { type Database, fixed } from '../db/index.ts'
import type { Metrics } from '../metrics/index.ts'
import { labelValue } from '../metrics/label.ts'
import type { Log } from '../observability/log.ts'
import { repeat } from '../time/repeat.ts'
import { metricPrefix, type WireNames } from '../wire-names/index.ts'

/** Most series, in the order of their keys, so a scrape stays small. */
export const MAX_SERIES = 5_000
/** The first profiles are computed a minute after the start. */
const FIRST_MS = 75_000
const EVERY_MS = 60_000

interface Drifts {
  readonly series: readonly (readonly [namespace: string, kind: string, name: string, type: string, items: number])[]
  /** By type, over all workloads. */
  readonly sums: readonly (readonly [type: string, items: number])[]
  /** Workloads with as many network rules as they may have. */
  readonly full: number
}

const READ = fixed<[Drifts]>(`
  with found as materialized (
    select p.pod_namespace as namespace, p.workload_kind as kind, p.workload_name as name, d.key collate "C" as type,
           d.value::integer as items
    from workload_profile p
    cross join lateral json_each_text(p.summary -> 'drift' -> 'byType') d
    where p.has_drift)
  select
    (select coalesce(json_agg(json_build_array(s.namespace, s.kind, s.name, s.type, s.items)
                              order by s.namespace, s.kind, s.name, s.type), '[]')
     from (select * from found f order by f.namespace, f.kind, f.name, f.type limit ${MAX_SERIES}) s) as series,
    (select coalesce(json_agg(json_build_array(t.type, t.items) order by t.type), '[]')
     from (select f.type, sum(f.items) as items from found f group by f.type) t) as sums,
    (select count(*)::integer from workload_profile p where p.is_full) as "full"`)

/** The text of the gauge as it was read last. It is kept as text: a scrape with all series only copies it. */
export class DriftSeries {
  readonly #name: string
  #named: string
  #summed: string

  constructor(wireNames: WireNames) {
    this.#name = `${metricPrefix(wireNames)}workload_drift`
    this.#named = this.#summed = this.#text([])
  }

  replace({ series, sums }: Pick<Drifts, 'series' | 'sums'>): void {
    this.#named = this.#text(
      series.map(
        ([namespace, kind, name, type, items]) =>
          `workload_namespace="${labelValue(namespace)}",workload_kind="${labelValue(kind)}",` +
          `workload="${labelValue(name)}",type="${labelValue(type)}"} ${items}`,
      ),
    )
    this.#summed = this.#text(sums.map(([type, items]) => `type="${labelValue(type)}"} ${items}`))
  }

  /** The text format of Prometheus with a line end: all series, or only sums by type if workload names are hidden. */
  text(showsWorkloads = true): string {
    return showsWorkloads ? this.#named : this.#summed
  }

  #text(samples: readonly string[]): string {
    const head = [`# HELP ${this.#name} Drift of workloads, by type.`, `# TYPE ${this.#name} gauge`]
    return `${[...head, ...samples.map((sample) => `${this.#name}{${sample}`)].join('\n')}\n`
  }
}

/** Reads the drift of all workloads in the list. */
export async function readDrift(db: Pick<Database, 'job'>, series: DriftSeries, metrics: Metrics): Promise<void> {
  const [found] = await db.job((sql) => READ(sql))
  series.replace(found!)
  metrics.profilesFull.set(found!.full)
}

/**
 * Reads the drift again and again; each replica does, so that all of them answer alike. After a failure the gauge keeps
 * its values.
 */
export function watchDrift(options: { db: Database; series: DriftSeries; metrics: Metrics; log: Log }): {
  stop(): void
} {
  const { db, series, metrics, log } = options
  return repeat(
    () => readDrift(db, series, metrics),
    EVERY_MS,
    (error) => log.debug({ err: error }, 'the drift of workloads could not be read'),
    FIRST_MS,
  )
}
