/** Writes what the snapshotter computes (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import { oneLine } from '../../text/one-line.ts'
import { truncateToBytes } from '../../text/utf8.ts'
import type { BuiltProfile, WorkloadKey } from '../built.ts'
import { MAX_SNAPSHOT_RULES } from '../snapshot.ts'
import { canonicalJson, type HashedSnapshot, hashSnapshot } from './hash.ts'
import type { VersionPosture } from './record.ts'
import { type ProfileSummary, summaryOf } from './summary.ts'

/** Bytes of a stored message; the rest is cut. */
const MAX_MESSAGE_BYTES = 512

export interface NewVersion extends HashedSnapshot {
  readonly posture: VersionPosture
  readonly summary: ProfileSummary
  readonly ruleCount: number
}

export interface StoredVersion {
  /** Null: another writer stored another state as that revision, and nothing was written. */
  readonly revision: number | null
  readonly isNew: boolean
}

const STORE = fixed<[{ stored_revision: number | null; is_new: boolean }]>(`
  select s.stored_revision, s.is_new
  from store_profile_version($1::text, $2::text, $3::text, $4::text, $5::text::json, $6::text::json, $7::text::json,
                             $8::text, $9::text::json, $10::boolean, $11::boolean, $12::integer) s`)

/**
 * Stores a profile in one transaction: a new version where its hash differs from that of the newest one, of which at
 * most `maxPerWorkload` are kept, and the row of the list. A recorded failure of the workload is deleted.
 */
export async function storeVersion(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  { snapshotText, contentHash, dimensionHashes, posture, summary, ruleCount }: NewVersion,
  maxPerWorkload: number,
): Promise<StoredVersion> {
  const [hashes, stored, listed] = [dimensionHashes, posture, summary].map(canonicalJson) as [string, string, string]
  const isFull = ruleCount >= MAX_SNAPSHOT_RULES
  const values = [posture.status, listed, summary.drift.count > 0, isFull, maxPerWorkload] as const
  const [row] = await gate((sql) =>
    STORE(sql, namespace, kind, name, contentHash, hashes, stored, snapshotText, ...values),
  )
  return { revision: row!.stored_revision, isNew: row!.is_new }
}

/** Stores a profile as it was computed. */
export const storeProfile = (
  gate: Gate,
  workload: WorkloadKey,
  { profile, snapshot }: BuiltProfile,
  maxPerWorkload: number,
): Promise<StoredVersion> => {
  const { status, coverage } = profile.posture
  const version = {
    ...hashSnapshot(snapshot),
    posture: { status, coverage },
    summary: summaryOf(profile),
    ruleCount: snapshot.network.rules.length,
  }
  return storeVersion(gate, workload, version, maxPerWorkload)
}

const FAIL = fixed<[{ is_news: boolean }]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name, $4::text as message),
  known as materialized (
    select f.message
    from asked a
    join workload_profile_failure f
      on f.pod_namespace = a.namespace and f.workload_kind = a.kind and f.workload_name = a.name
     and f.cluster_id = 'primary'),
  failed as (
    insert into workload_profile_failure
    select 'primary', a.namespace, a.kind, a.name, a.message, now() at time zone 'utc' from asked a
    on conflict (pod_namespace, workload_kind, workload_name, cluster_id) do update set
      message = excluded.message, failed_at = excluded.failed_at)
  select not exists (select from known k where k.message = a.message) as is_news from asked a`)

/** Records that an attempt failed. Resolves to whether the one before did not fail in the same way. */
export async function storeFailure(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  message: string,
): Promise<boolean> {
  const cut = truncateToBytes(oneLine(message), MAX_MESSAGE_BYTES)
  const [row] = await gate((sql) => FAIL(sql, namespace, kind, name, cut))
  return row!.is_news
}
