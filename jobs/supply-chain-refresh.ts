import { isStopped, type Job, type JobContext, joinPasses, NOTHING, type Pass } from './job.ts'
import { countDeletions, deletePayloads, expireSets } from './supply-chain/deletions.ts'
import { countStaleLinks, relinkAll } from './supply-chain/relink.ts'
import {
  countChanged,
  countChangedImages,
  endDecisions,
  expireAliases,
  findChangedImages,
  forgetDecisions,
  forgetPackages,
  forgetUse,
  judgeContainers,
  nameFindings,
  noteTierRule,
  readPackages,
  refreshFacts,
} from './supply-chain/steps.ts'

const FIRST_AFTER_SECS = 45
/** A long pass. */
const PASS_SECS = 600

type Step = (context: JobContext) => Promise<Pass>

/** The steps that update the summary, in this order, and those that delete. */
const REFRESH: readonly Step[] = [
  readPackages,
  noteTierRule,
  relinkAll,
  nameFindings,
  judgeContainers,
  findChangedImages,
  refreshFacts,
  countChanged,
  endDecisions,
]
const DELETE: readonly Step[] = [expireSets, deletePayloads, expireAliases, forgetUse, forgetDecisions, forgetPackages]

/**
 * Links payloads to the images that run, names findings by the known aliases, links files that ran to the packages that
 * own them, updates the summary of vulnerabilities, and deletes unused payloads (docs/contract.md#findings,
 * docs/contract.md#in-use, docs/contract.md#retention). Unchanged payloads are compared
 * but not read again: the cost depends on what has changed, be it a payload, its header or only pods. Ingest waits for
 * it only while links are written. A step that fails does not keep the others from running.
 */
export const supplyChainRefresh: Job = {
  name: 'supply-chain-refresh',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.supplyChainIntervalSecs,

  async run(context) {
    const refreshed = await inTurn(REFRESH, context)
    if (refreshed.errors.length === 0 && refreshed.pass.outcome === 'done') await noteRefresh(context)
    if (isStopped(refreshed.pass)) return refreshed.pass
    const deleted = await inTurn(DELETE, context)
    const [error] = [...refreshed.errors, ...deleted.errors]
    if (error !== undefined) throw error
    return joinPasses(refreshed.pass, deleted.pass)
  },

  /** Payloads to relink, images to examine, and rows to delete. */
  async count(context) {
    const { config, db } = context
    const links = await countStaleLinks(db)
    const images = await countChangedImages(db, config.imageRunningWindowSecs)
    return links + images + (await countDeletions(context))
  },
}

interface Steps {
  readonly pass: Pass
  readonly errors: readonly unknown[]
}

/** Runs the steps in order, up to one that is skipped or aborted. */
async function inTurn(steps: readonly Step[], context: JobContext): Promise<Steps> {
  const errors: unknown[] = []
  let pass = NOTHING
  for (const step of steps) {
    try {
      pass = joinPasses(pass, await step(context))
    } catch (error) {
      context.log.error({ job: supplyChainRefresh.name, step: step.name, err: error }, 'a step of the job failed')
      errors.push(error)
    }
    if (isStopped(pass)) break
  }
  return { pass, errors }
}

/**
 * Records the time as of which the summary holds, and until when its containers count as watched: two passes may fail.
 * Only complete passes record it.
 */
async function noteRefresh({ config, db }: JobContext): Promise<void> {
  const answersSecs = 3 * config.supplyChainIntervalSecs + PASS_SECS
  await db.job(
    (sql) => sql`
  insert into cve_summary_state (refreshed_at, judged_until)
  values (now() at time zone 'utc', now() at time zone 'utc' + make_interval(secs => ${answersSecs}))
  on conflict (is_only) do update set
    refreshed_at = excluded.refreshed_at, judged_until = excluded.judged_until`,
  )
}
