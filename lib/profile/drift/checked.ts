/** The outcome of a check for drift. */
import { finding } from '../finding.ts'
import type { Finding, Severity } from '../record/common.ts'
import type { Drift, DriftItem, DriftType } from '../record/drift.ts'

export type NotEvaluated = Drift['notEvaluated'][number]

export interface Checked {
  readonly items: readonly DriftItem[]
  readonly findings: readonly Finding[]
  /** Why nothing can be said; the check was made for the whole workload where this is empty. */
  readonly missing: readonly NotEvaluated[]
}

interface Found {
  readonly item: DriftItem
  readonly finding: Finding
}

/** An item with its finding; null as container is the pod. */
export function found(
  type: DriftType,
  severity: Severity,
  container: string | null,
  texts: { readonly title: string; readonly detail: string },
  detail: DriftItem['detail'],
): Found {
  const made = finding('drift', type, severity, texts, container ?? 'pod')
  return {
    item: { type, findingId: made.id, severity, container, detail },
    finding: { ...made, container },
  }
}

/** The outcome of a check that was made; items of one container may share a finding, which is the first one's. */
export const checked = (all: readonly Found[], missing: readonly NotEvaluated[] = []): Checked => ({
  items: all.map(({ item }) => item),
  findings: all.map((one) => one.finding).filter(({ id }, n, list) => list.findIndex((one) => one.id === id) === n),
  missing,
})

/** The outcome of a check that could not be made. */
export const notEvaluated = (type: DriftType, reason: string): Checked =>
  checked([], [{ type, container: null, reason }])
