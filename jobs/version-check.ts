import { type Database, DatabaseUnavailable } from '../lib/db/index.ts'
import { readEnvironment } from '../lib/nodes/index.ts'
import { askReleases, type CheckIn, checkInUrl, podsBucket } from '../lib/telemetry/check-in.ts'
import type { Job } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 120
/** Whoever asks has asked for everybody: for this long nobody else does, whatever came of it. */
const CLAIM_SECS = 1_800

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

/** The install id, for one process at a time; null when another asked lately. */
async function claim(db: Database): Promise<string | null | undefined> {
  const [row] = await db.job(
    (sql) => sql<{ install_id: string | null }[]>`
  with ${held(sql, 'version-check')},
  claimed as (
    update install set claimed_at = now() at time zone 'utc'
    where (select is_held from held)
      and (claimed_at is null or claimed_at < now() at time zone 'utc' - make_interval(secs => ${CLAIM_SECS}))
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

/** Asks the version service once a day which releases there are. Its failures are silent and wait for the next day. */
export const versionCheck: Job = {
  name: 'version-check',
  everySecs: (config) => (config.telemetryEnabled && config.telemetryEndpoint !== null ? config.telemetryIntervalSecs : null),
  firstAfterSecs: FIRST_AFTER_SECS,

  async run({ config, db, log, signal }) {
    const install = await claim(db)
    if (!install) return { outcome: 'skipped', rows: 0, batches: 0 }
    const cluster = await describe(db).catch((error) => {
      if (error instanceof DatabaseUnavailable) throw error
      return UNKNOWN
    })
    const { provider, distro, cni, ip_family, node_os, nodes, pods_bucket } = cluster
    const { chartVersion: chart, kubeVersion: k8s, features } = config
    const sent = { install, chart, k8s, nodes, provider, distro, cni, ip_family, node_os, pods_bucket, features }
    try {
      const latest = await askReleases(checkInUrl(config.telemetryEndpoint!, sent), signal)
      await db.job((sql) => sql`update install set latest = ${JSON.stringify(latest)}::text::json, checked_at = now() at time zone 'utc'`)
      return { outcome: 'done', rows: 1, batches: 1 }
    } catch (error) {
      log.debug({ err: error }, 'the version service gave no answer')
      return { outcome: 'failed', rows: 0, batches: 1 }
    }
  },

  count: async () => 1,
}
