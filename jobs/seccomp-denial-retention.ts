import { inSequence, type Job, type JobContext, type Pass } from './job.ts'
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
 * Attributes denials to workloads whose pods are known by now, then deletes denials and nodes that were not heard of
 * for the retention days; 0 days keep all of them (docs/contract.md#denials).
 */
export const seccompDenialRetention: Job = {
  name: 'seccomp-denial-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.seccompDenialsIntervalSecs,

  run(context) {
    const steps = context.config.seccompDenialsRetentionDays === 0 ? [attribute] : [attribute, ...DELETE]
    return inSequence(steps.map((step) => () => step(context)))
  },

  async count(context) {
    const attributable = await countAttributable(context)
    return context.config.seccompDenialsRetentionDays === 0
      ? attributable
      : attributable + (await countDeletions(context))
  },
}
