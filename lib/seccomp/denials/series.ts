import { labelValue } from '../../metrics/label.ts'
import { metricPrefix, type WireNames } from '../../wire-names/index.ts'

/** Most series. Denials of further ones count only in the sum, so a scrape stays small. */
export const MAX_SERIES = 10_000

/** Number of denials of a workload and an action. */
export interface Delta {
  readonly workload_namespace: string
  readonly workload_kind: string
  readonly workload_name: string
  readonly action: string
  readonly denials: number
}

/**
 * The counter of denials by workload, and with the kguardian names by action too. It stores the text of the labels: a
 * metrics library builds objects for all series at each scrape, which blocks the event loop for 50 ms at the maximum,
 * and this takes 3 ms.
 */
export class DenialSeries {
  readonly #name: string
  readonly #hasActions: boolean
  /** Values by the text of their labels. */
  readonly #values = new Map<string, number>()
  /** Sum over all workloads, including those without a series. */
  #sum = 0

  constructor(wireNames: WireNames) {
    this.#name = `${metricPrefix(wireNames)}seccomp_denials_total`
    this.#hasActions = wireNames === 'kguardian'
  }

  /** Adds to a series. Returns false if that would be one series too many. */
  add({ workload_namespace, workload_kind, workload_name, action, denials }: Delta): boolean {
    const workload =
      `workload_namespace="${labelValue(workload_namespace)}",workload_kind="${labelValue(workload_kind)}",` +
      `workload="${labelValue(workload_name)}"`
    this.#sum += denials
    const labels = this.#hasActions ? `${workload},action="${labelValue(action)}"` : workload
    const value = this.#values.get(labels)
    if (value === undefined && this.#values.size >= MAX_SERIES) return false
    this.#values.set(labels, (value ?? 0) + denials)
    return true
  }

  /** The text format of Prometheus with a line end: all series, or only the sum if workload names are hidden. */
  text(showsWorkloads = true): string {
    const type = `# TYPE ${this.#name} counter`
    if (!showsWorkloads)
      return `# HELP ${this.#name} Seccomp denials that were stored.\n${type}\n${this.#name} ${this.#sum}\n`
    const lines = [`# HELP ${this.#name} Seccomp denials that were stored, by workload.`, type]
    for (const [labels, value] of this.#values) lines.push(`${this.#name}{${labels}} ${value}`)
    return `${lines.join('\n')}\n`
  }
}
