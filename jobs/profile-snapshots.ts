import type { Config } from '../lib/config/index.ts'
import { type Database, type Gate, isNoConnection } from '../lib/db/index.ts'
import { safeMessage } from '../lib/observability/log.ts'
import { buildProfile } from '../lib/profile/build.ts'
import type { BuiltProfile, WorkloadKey } from '../lib/profile/built.ts'
import { storeFailure, storeProfile } from '../lib/profile/versions/index.ts'
import type { Job, JobContext, Pass, PassOutcome } from './job.ts'
import { countCandidates, countPrunable, FIRST, nextCandidates, pruneFailures } from './profiles/candidates.ts'
import { type Turn, takeTurn } from './profiles/turn.ts'

const FIRST_AFTER_SECS = 60
const MS_PER_SECOND = 1_000

/** Computes the profile of a workload; null if nothing is known of it. */
type Build = (
  context: { readonly db: Database; readonly config: Config },
  workload: WorkloadKey,
  gate: Gate,
) => Promise<BuiltProfile | null>

/**
 * Computes the profiles of all workloads, one after the other, and stores what changed
 * (docs/contract.md#workload-profiles). A pass takes batches until none is left or its time is over; the first one it
 * always takes. Where a profile cannot be computed, that is recorded, and the pass goes on with the next workload.
 */
export const snapshotsBy = (build: Build): Job => ({
  name: 'profile-snapshots',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => config.profileSnapshotIntervalSecs,

  async run(context) {
    const turn = await takeTurn(context.db)
    if (turn === null) return { outcome: 'skipped', rows: 0, batches: 0 }
    try {
      const pruned = await pruneFailures(context.db)
      const pass = await computeAll(context, turn, build)
      return { ...pass, rows: pass.rows + pruned }
    } finally {
      // A turn that cannot be ended lapses.
      await turn.end().catch(() => {})
    }
  },

  /** The workloads to compute, and failures to delete. */
  count: async ({ db }) => (await countCandidates(db)) + (await countPrunable(db)),
})

export const profileSnapshots = snapshotsBy(buildProfile)

async function computeAll(context: JobContext, turn: Turn, build: Build): Promise<Pass> {
  const { db, config, signal } = context
  const { profileSnapshotBatch: max, profileSnapshotIntervalSecs, profileSnapshotTickBudgetSecs } = config
  const endsAt = performance.now() + MS_PER_SECOND * (profileSnapshotTickBudgetSecs ?? profileSnapshotIntervalSecs)
  let after = FIRST
  let rows = 0
  for (let batches = 0; ; batches++) {
    const ended = (outcome: PassOutcome) => ({ outcome, rows, batches })
    if (batches > 0 && performance.now() >= endsAt) return ended('capped')
    const found = await nextCandidates(db, turn.startedAt, after, max)
    for (const workload of found) {
      if (signal.aborted) return ended('aborted')
      if (!(await turn.keep())) return ended('skipped')
      rows += await compute(context, workload, build)
    }
    after = found.at(-1) ?? after
    if (found.length < max) return { outcome: 'done', rows, batches: batches + 1 }
  }
}

/**
 * Resolves to the number of profiles that were stored: 0 or 1. Rejects only without a connection, since the other
 * workloads would fail in the same way.
 */
async function compute({ db, config, log }: JobContext, workload: WorkloadKey, build: Build): Promise<number> {
  try {
    const built = await build({ db, config }, workload, db.job)
    // Without its flows it would be another state of the workload.
    if (built === null || !built.areFlowsCounted) return 0
    const { revision } = await storeProfile(db.job, workload, built, config.profileVersionsMaxPerWorkload)
    return revision === null ? 0 : 1
  } catch (error) {
    if (isNoConnection(error)) throw error
    const isNews = await storeFailure(db.job, workload, safeMessage(error))
    const { namespace, kind, name } = workload
    const fields = { job: 'profile-snapshots', workload: `${kind} ${namespace}/${name}`, err: error }
    log[isNews ? 'warn' : 'debug'](fields, 'the profile of a workload could not be computed')
    return 0
  }
}
