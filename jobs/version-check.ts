import { type Database, DatabaseUnavailable } from '../lib/db/index.ts'
import { readEnvironment } from '../lib/nodes/index.ts'
import { askReleases, type CheckIn, checkInUrl, podsBucket } from '../lib/telemetry/check-in.ts'
import { JITTER, type Job } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 120
/** Tolerance for clock differences about when the last check-in was. */
const CLOCK_SLACK_SECS = 60

type Platform = Pick<CheckIn, 'cni' | 'ip_family' | 'provider' | 'distro' | 'node_os'>
type Cluster = Platform & Pick<CheckIn, 'nodes' | 'pods_bucket'>

const UNKNOWN: Cluster = {
  provider: 'unknown',
  distro: 'unknown',
  cni: 'unknown',
  ip_family: 'unknown',
  node_os: 'unknown',
  nodes: 0,
  pods_bucket: 'unknown',
}

/**
 * Returns the install id to one process per interval, which then checks in for all, whether or not that succeeds; null
 * to the others. An interval is the shortest possible time between two passes, so that the next pass may claim again.
 */
async function claim(db: Database, everySecs: number): Promise<string | null | undefined> {
  const claimSecs = everySecs * (1 - JITTER) - CLOCK_SLACK_SECS
  const [row] = await db.job(
    (sql) => sql<{ install_id: string | null }[]>`
  with ${held(sql, 'version-check')},
  claimed as (
    update install set claimed_at = now() at time zone 'utc'
    where (select is_held from held)
      and (claimed_at is null or claimed_at < now() at time zone 'utc' - make_interval(secs => ${claimSecs}::float8)
           -- from before the clock was set back
           or claimed_at > now() at time zone 'utc' + make_interval(secs => ${CLOCK_SLACK_SECS}::float8))
    returning install_id)
  select (select install_id from claimed)::text as install_id`,
  )
  return row?.install_id
}

async function describe(db: Database): Promise<Cluster> {
  const { provider, distro, cni, ip_family, node_os } = JSON.parse(String(await readEnvironment(db.job))) as Platform
  const [row] = await db.job(
    (sql) => sql<{ nodes: number; pods: number }[]>`
  select count(distinct node_name)::int as nodes, count(*)::int as pods from pod where not is_dead`,
  )
  return { provider, distro, cni, ip_family, node_os, nodes: row!.nodes, pods_bucket: podsBucket(row!.pods) }
}

/**
 * Asks the version service once a day for the available releases, once for all processes and however often they
 * restart. Failures are not logged as errors; the next day tries again.
 */
export const versionCheck: Job = {
  name: 'version-check',
  everySecs: (config) =>
    config.telemetryEnabled && config.telemetryEndpoint !== null ? config.telemetryIntervalSecs : null,
  firstAfterSecs: FIRST_AFTER_SECS,

  async run({ config, db, log, signal }) {
    // Before the claim, so that a missing database uses up no check-in.
    const cluster = await describe(db).catch((error) => {
      if (error instanceof DatabaseUnavailable) throw error
      return UNKNOWN
    })
    if (signal.aborted) return { outcome: 'aborted', rows: 0, batches: 0 }
    const install = await claim(db, config.telemetryIntervalSecs)
    if (!install) return { outcome: 'skipped', rows: 0, batches: 0 }
    const { provider, distro, cni, ip_family, node_os, nodes, pods_bucket } = cluster
    const { chartVersion: chart, kubeVersion: k8s, features } = config
    const sent = { install, chart, k8s, nodes, provider, distro, cni, ip_family, node_os, pods_bucket, features }
    try {
      const latest = await askReleases(checkInUrl(config.telemetryEndpoint!, sent), signal)
      await db.job(
        (sql) =>
          sql`update install set latest = ${JSON.stringify(latest)}::text::json, checked_at = now() at time zone 'utc'`,
      )
      return { outcome: 'done', rows: 1, batches: 1 }
    } catch (error) {
      log.debug({ err: error }, 'the version service gave no answer')
      return { outcome: 'failed', rows: 0, batches: 1 }
    }
  },

  count: async () => 1,
}
