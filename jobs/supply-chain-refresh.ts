import type { Job, JobContext, Outcome, Pass } from './job.ts'
import { forgetAliases } from './supply-chain/aliases.ts'
import { countChanged } from './supply-chain/counts.ts'
import { countDeletions, deletePayloads, expireSets } from './supply-chain/deletions.ts'
import { foldFacts } from './supply-chain/facts.ts'
import { countChangedImages, findChangedImages } from './supply-chain/images.ts'
import { nameFindings } from './supply-chain/names.ts'
import { countStaleLinks, relinkAll } from './supply-chain/relink.ts'

const FIRST_AFTER_SECS = 45

type Step = (context: JobContext) => Promise<Pass>

/** Those that bring the summary up to date, in this order, and those that delete. */
const REFRESH: readonly Step[] = [relinkAll, nameFindings, findChangedImages, foldFacts, countChanged]
const DELETE: readonly Step[] = [expireSets, deletePayloads, forgetAliases]

/**
 * Links payloads to the images that run, names findings by the aliases that are known, brings the summary of vulnerabilities up to date, and deletes what is no longer needed
 * (interop-supply-chain 3.5, 5 to 7). What is the same as at the last pass is compared and not read again: the cost is that of what
 * has changed, be it a payload, its header alone or pods alone. Ingest never waits for it, but for the moment in which links are
 * written. A step that fails keeps none of the others from being done.
 */
export const supplyChainRefresh: Job = {
  name: 'supply-chain-refresh',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.supplyChainIntervalSecs,

  async run(context) {
    const refreshed = await inTurn(REFRESH, context)
    if (refreshed.faults.length === 0 && refreshed.pass.outcome === 'done') await noteRefresh(context)
    if (refreshed.pass.outcome === 'skipped' || refreshed.pass.outcome === 'aborted') return refreshed.pass
    const deleted = await inTurn(DELETE, context)
    const [fault] = [...refreshed.faults, ...deleted.faults]
    if (fault !== undefined) throw fault
    return joined(refreshed.pass, deleted.pass)
  },

  /** Payloads to be linked anew, images to be looked at, and rows to be deleted. */
  async count(context) {
    const { config, db } = context
    const links = await countStaleLinks(db)
    const images = await countChangedImages(db, config.imageRunningWindowSecs)
    return links + images + (await countDeletions(context))
  },
}

interface Steps {
  readonly pass: Pass
  readonly faults: readonly unknown[]
}

/** One step after the other, up to one that another process is at, or that was told to stop. */
async function inTurn(steps: readonly Step[], context: JobContext): Promise<Steps> {
  const faults: unknown[] = []
  let pass: Pass = { outcome: 'done', rows: 0, batches: 0 }
  for (const step of steps) {
    try {
      pass = joined(pass, await step(context))
    } catch (error) {
      context.log.error({ job: supplyChainRefresh.name, step: step.name, err: error }, 'a step of the job failed')
      faults.push(error)
    }
    if (pass.outcome === 'skipped' || pass.outcome === 'aborted') break
  }
  return { pass, faults }
}

const WORST: readonly Outcome[] = ['aborted', 'skipped', 'failed', 'capped', 'done']

const joined = (a: Pass, b: Pass): Pass => ({
  outcome: WORST.find((outcome) => outcome === a.outcome || outcome === b.outcome)!,
  rows: a.rows + b.rows,
  batches: a.batches + b.batches,
})

/** The time to which the summary holds; a pass that left something for the next does not tell one. */
async function noteRefresh({ db }: JobContext): Promise<void> {
  await db.job(
    (sql) => sql`
  insert into cve_summary_state (refreshed_at) values (now() at time zone 'utc')
  on conflict (is_only) do update set refreshed_at = excluded.refreshed_at`,
  )
}
