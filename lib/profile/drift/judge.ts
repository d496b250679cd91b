/** The drift of a profile (docs/contract.md#workload-profiles). It never decides the posture. */
import type { Judged } from '../finding.ts'
import type { InventoryRow } from '../inventory.ts'
import { DRIFT_TYPES, type Drift, type DriftType } from '../record/drift.ts'
import type { PodSecuritySnapshot } from '../snapshot.ts'
import type { Checked } from './checked.ts'
import type { DriftFacts } from './facts.ts'
import { imageChanged, tagMoved } from './images.ts'
import { baselineOf, type Rejudge, regression } from './regression.ts'
import { unshipped } from './unshipped.ts'

interface Now {
  readonly rows: readonly InventoryRow[]
  /** Whether the inventory has more rows than `rows`. */
  readonly isTruncated: boolean
  readonly podSecurity: PodSecuritySnapshot
  readonly dimensionHashes: { readonly podSecurity: string }
  readonly rejudge: Rejudge
}

/**
 * Compares a workload with what was exported or seen before. Each type is either in `evaluated` or, with a reason, in
 * `notEvaluated`; `unshippedExecutable` may be there for each container.
 */
export function judgeDrift(facts: DriftFacts, now: Now): Judged<Drift> {
  const { rows, isTruncated, podSecurity, dimensionHashes, rejudge } = now
  const baseline = baselineOf(facts, dimensionHashes.podSecurity)
  const checks: Readonly<Record<DriftType, Checked>> = {
    tagMoved: tagMoved(rows),
    imageChangedSinceExport: imageChanged(rows, facts.export),
    securityContextRegression: regression(baseline, podSecurity, rejudge),
    unshippedExecutable: unshipped(rows, facts, isTruncated),
  }
  const all = DRIFT_TYPES.map((type) => checks[type])
  return {
    dimension: {
      baselines: { export: shownExport(facts), securityContext: baseline?.shown ?? null },
      evaluated: DRIFT_TYPES.filter((type) => checks[type].missing.length === 0),
      // Files come first: they are the check that is most often incomplete.
      notEvaluated: [checks.unshippedExecutable, ...all.slice(0, -1)].flatMap(({ missing }) => missing),
      items: all.flatMap(({ items }) => items),
    },
    findings: all.flatMap(({ findings }) => findings),
  }
}

function shownExport({ export: exported }: DriftFacts): Drift['baselines']['export'] {
  if (exported === null) return null
  const { revision, contentHash, mode, artifacts, exportedAt } = exported
  return { revision, contentHash, mode, artifacts: [...artifacts], exportedAt }
}
