import { metricPrefix, type WireNames } from '../../wire-names/index.ts'

/** Series beyond these are not counted, so that a scrape stays small. */
export const MAX_SERIES = 10_000

/** How many denials of a workload and an action a drain had. */
export interface Delta {
  readonly workload_namespace: string
  readonly workload_kind: string
  readonly workload_name: string
  readonly action: string
  readonly denials: number
}

/**
 * The counter of denials by workload, and by action where the ecosystem's names are spoken. It keeps the text of its labels: a library makes objects of
 * all series at each scrape, which for so many takes fifty milliseconds at once, and this takes three.
 */
export class DenialSeries {
  readonly #name: string
  readonly #hasActions: boolean
  /** Values by the text of their labels. */
  readonly #values = new Map<string, number>()
  /** Of all workloads, those beyond the series included. */
  #sum = 0

  constructor(wireNames: WireNames) {
    this.#name = `${metricPrefix(wireNames)}seccomp_denials_total`
    this.#hasActions = wireNames === 'kguardian'
  }

  /** Whether it is counted: what would be one series too many is not. */
  add({ workload_namespace, workload_kind, workload_name, action, denials }: Delta): boolean {
    const workload = `workload_namespace="${escaped(workload_namespace)}",workload_kind="${escaped(workload_kind)}",workload="${escaped(workload_name)}"`
    this.#sum += denials
    const labels = this.#hasActions ? `${workload},action="${escaped(action)}"` : workload
    const value = this.#values.get(labels)
    if (value === undefined && this.#values.size >= MAX_SERIES) return false
    this.#values.set(labels, (value ?? 0) + denials)
    return true
  }

  /** All of it in the text format of Prometheus, with a line end; or, without the names of workloads, the sum. */
  text(showsWorkloads = true): string {
    const type = `# TYPE ${this.#name} counter`
    if (!showsWorkloads)
      return `# HELP ${this.#name} Seccomp denials that were stored.\n${type}\n${this.#name} ${this.#sum}\n`
    const lines = [`# HELP ${this.#name} Seccomp denials that were stored, by workload.`, type]
    for (const [labels, value] of this.#values) lines.push(`${this.#name}{${labels}} ${value}`)
    return `${lines.join('\n')}\n`
  }
}

const escaped = (text: string) => (/["\\\n]/.test(text) ? text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n') : text)
