/** Findings and the status that follows from them (docs/contract.md#workload-profiles). */
import type { Finding, Severity, Status } from './record/common.ts'

const TIERS = { critical: 'P0', high: 'P1', medium: 'P2', low: null, info: null } as const

/** Makes a finding; one about a container has its name in the id. */
export function finding(
  dimension: Finding['dimension'],
  rule: string,
  severity: Severity,
  texts: { readonly title: string; readonly detail: string },
  container: string | null = null,
): Finding {
  const id = `${dimension}.${rule}${container === null ? '' : `/${container}`}`
  return { id, dimension, severity, tier: TIERS[severity], ...texts, container }
}

/** A dimension with the findings that it gives. */
export interface Judged<D> {
  readonly dimension: D
  readonly findings: readonly Finding[]
}

/** The status of a dimension with data: the worst of its findings decides. */
export function statusOf(findings: readonly Finding[]): Exclude<Status, 'unknown'> {
  const isAny = (...severities: Severity[]) => findings.some(({ severity }) => severities.includes(severity))
  if (isAny('critical', 'high')) return 'risk'
  return isAny('medium') ? 'warn' : 'ok'
}
