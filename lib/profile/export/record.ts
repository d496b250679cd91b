/** Stores an export, with which later profiles are compared (docs/contract.md#workload-profiles). */
import { type Database, fixed } from '../../db/index.ts'
import type { Artifact, Source } from './document.ts'

/** Exports that are kept of each workload. */
const MAX_EXPORTS = 20

const RECORD = fixed(`
  select record_profile_export(
    $1::text, $2::text, $3::text, $4::text, $5::integer, $6::text, $7::text,
    array(select json_array_elements_text($8::text::json)), $9::text::json, $10::text::json, ${MAX_EXPORTS},
    $11::boolean)`)

/** Stores what was exported, and deletes the oldest records of the workload beyond their bound. */
export async function recordExport(
  db: Database,
  { key, mode, profile, snapshot }: Source,
  artifacts: readonly Artifact[],
): Promise<void> {
  const { clusterId } = profile.workload
  const revision = profile.version?.revision ?? null
  const texts = [artifacts, snapshot.images, snapshot.podSecurity].map((one) => JSON.stringify(one))
  const [names, images, podSecurity] = texts as [string, string, string]
  const values = [clusterId, key.namespace, key.kind, key.name, revision, profile.contentHash, mode, names]
  await db.ingest((sql, isOutcomeUnknown) => RECORD(sql, ...values, images, podSecurity, isOutcomeUnknown))
}
