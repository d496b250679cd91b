/** Runs the jobs whose data pages show, without the pauses that spare a live broker. */
import { computeFold } from '../../../../jobs/compute-fold.ts'
import { jobs } from '../../../../jobs/index.ts'
import { supplyChainRefresh } from '../../../../jobs/supply-chain-refresh.ts'
import { buildProfile } from '../../../../lib/profile/build.ts'
import type { WorkloadKey } from '../../../../lib/profile/built.ts'
import { storeProfile } from '../../../../lib/profile/versions/index.ts'
import type { Site } from './site.ts'

/** Two days. */
const LATE_SECS = 172_800
const FLOWS_AT_ONCE = 50_000
/** Number of profiles that are computed at once. */
const BUILDERS = 4

/** Counts all flows into edges, oldest first. `isNew` marks flows without a transaction number. */
export async function countFlows({ sql }: Site, { isNew = false } = {}): Promise<void> {
  if (isNew) await sql`update flow_edge_cursor set time_stamp = '-infinity', uuid = '' where time_stamp is null`
  for (;;) {
    const [step] = await sql<{ is_last: boolean }[]>`
      select is_last from count_flow_edges(${FLOWS_AT_ONCE}::int, 0::float8)`
    if (step!.is_last) break
  }
  await sql`select record_service_backends(true)`
}

export const refreshSupplyChain = (site: Site) => site.runJob(supplyChainRefresh)

export const foldMinutes = (site: Site) => site.runJob(computeFold)

/** Stores the profiles of workloads as the job does, several at a time. */
export async function storeProfiles({ db, config }: Site, workloads: readonly WorkloadKey[]): Promise<void> {
  let next = 0
  const work = async () => {
    while (next < workloads.length) {
      const { namespace, kind, name } = workloads[next++]!
      const key = { namespace, kind, name }
      const built = await buildProfile({ db, config }, key, db.job)
      if (built !== null) await storeProfile(db.job, key, built, config.profileVersionsMaxPerWorkload)
    }
  }
  await Promise.all(Array.from({ length: BUILDERS }, work))
}

/** All jobs ran a moment ago, except one that is late. */
export async function recordJobs({ sql }: Site): Promise<void> {
  for (const [i, { name }] of jobs.entries()) {
    const agoSecs = name === 'image-inventory-retention' ? LATE_SECS : 5 + 3 * i
    await sql`
      insert into job_run (job, finished_at, duration_ms, rows)
      values (${name}, now() at time zone 'utc' - make_interval(secs => ${agoSecs}), ${20 + 13 * i}, ${i * 7})
      on conflict (job) do nothing`
  }
}
