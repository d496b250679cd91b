import type { Job, JobContext, Pass } from './job.ts'
import { attribute, countAttributable } from './seccomp/attribution.ts'
import {
  countDeletions,
  deleteDenialNodes,
  deleteDenials,
  deleteFileSets,
  deleteProfileNodes,
} from './seccomp/deletions.ts'

const FIRST_AFTER_SECS = 120

type Step = (context: JobContext) => Promise<Pass>

const DELETE: readonly Step[] = [deleteDenials, deleteDenialNodes, deleteProfileNodes, deleteFileSets]

/**
 * Attributes denials to workloads whose pods are known by now, then deletes denials that were not seen for the days, and nodes of which nothing
 * was heard for as long; 0 days keep all of them (workload-profiling, Denial rollup; interop-profiling 1.9, 4).
 */
export const seccompDenialRetention: Job = {
  name: 'seccomp-denial-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.seccompDenialsIntervalSecs,

  async run(context) {
    let pass: Pass = { outcome: 'done', rows: 0, batches: 0 }
    for (const step of context.config.seccompDenialsRetentionDays === 0 ? [attribute] : [attribute, ...DELETE]) {
      const { outcome, rows, batches } = await step(context)
      const isOver = outcome === 'skipped' || outcome === 'aborted'
      pass = {
        outcome: isOver || pass.outcome === 'done' ? outcome : pass.outcome,
        rows: pass.rows + rows,
        batches: pass.batches + batches,
      }
      if (isOver) break
    }
    return pass
  },

  async count(context) {
    const attributable = await countAttributable(context)
    return context.config.seccompDenialsRetentionDays === 0
      ? attributable
      : attributable + (await countDeletions(context))
  },
}
