/**
 * Reads the exports and versions that a profile is compared with, and the files that ran and no image shipped
 * (docs/contract.md#workload-profiles).
 */
import { fixed, type Gate } from '../../db/index.ts'
import { UNSHIPPED_ORIGINS } from '../../runtime/reads/record.ts'
import type { WorkloadKey } from '../built.ts'
import { runningPairs } from '../images/containers.ts'
import type { InventoryRow } from '../inventory.ts'
import { MAX_FILES } from '../record/drift.ts'
import type { PodSecuritySnapshot, Snapshot } from '../snapshot.ts'

/** Versions that are searched for one with other security contexts. */
const MAX_VERSIONS = 10
/** Files of all containers; with many containers each has fewer than `MAX_FILES`, and at least one. */
export const MAX_ALL_FILES = 640
/** Rows of unshipped files of a container that are read; the newest of these are listed. */
const MAX_ROWS = 10_000
/** Hours that a container must have been watched for. */
const WINDOW_HOURS = 24

export interface ExportRecord {
  readonly revision: number | null
  readonly contentHash: string
  readonly mode: 'audit' | 'enforce'
  readonly artifacts: readonly string[]
  readonly exportedAt: string
  readonly images: Snapshot['images']
  readonly podSecurity: PodSecuritySnapshot
}

export interface VersionFacts {
  readonly revision: number
  readonly createdAt: string
  readonly podSecurityHash: string
  readonly podSecurity: PodSecuritySnapshot
}

export interface UnshippedFile {
  readonly path: string
  readonly kind: 'exec' | 'lib'
  readonly origin: string
  readonly digest: string
  readonly pathComplete: boolean
  readonly firstSeen: string
  readonly lastSeen: string
}

export interface UnshippedFiles {
  readonly container: string
  /** The newest first. */
  readonly files: readonly UnshippedFile[]
  readonly total: number
  readonly origins: readonly string[]
}

export interface DriftFacts {
  /** The newest recorded export. */
  readonly export: ExportRecord | null
  /** The newest version, and the newest one with another hash of pod security; none where there is an export. */
  readonly versions: readonly VersionFacts[]
  /** Whether an agent has ever reported that it watches the workload. */
  readonly isWatched: boolean
  /** Containers and digests with a heartbeat in the window; a covered one has no reason. */
  readonly coverage: readonly { readonly container: string; readonly digest: string; readonly reason: string | null }[]
  /** Of the containers that run, on the digests that they run. */
  readonly unshipped: readonly UnshippedFiles[]
}

const ORIGINS = UNSHIPPED_ORIGINS.map((origin) => `'${origin}'`).join(', ')

// The origins are literals, so that the index of unshipped files is used.
const READ = fixed<[DriftFacts]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as workload_kind, $3::text as workload_name, $4::text::json as containers,
           $5::integer as max_files, retention_start($6::integer) as retention_start),
  exported as materialized (
    select x.*
    from asked a
    cross join lateral (
      select e.revision, e.content_hash, e.mode, e.artifacts, e.exported_at, e.images, e.pod_security
      from workload_profile_export e
      where e.pod_namespace = a.namespace and e.workload_kind = a.workload_kind
        and e.workload_name = a.workload_name and e.cluster_id = 'primary'
      order by e.exported_at desc, e.id desc
      limit 1) x),
  recent as materialized (
    select r.*, r.hash is distinct from first_value(r.hash) over (order by r.revision desc) as is_other
    from asked a
    cross join lateral (
      select v.revision, v.created_at, v.dimension_hashes ->> 'podSecurity' as hash, v.snapshot
      from workload_profile_version v
      where v.pod_namespace = a.namespace and v.workload_kind = a.workload_kind
        and v.workload_name = a.workload_name and v.cluster_id = 'primary'
      order by v.revision desc
      limit ${MAX_VERSIONS}) r
    where not exists (select from exported)),
  versions as materialized (
    (select r.* from recent r order by r.revision desc limit 1)
    union all
    (select r.* from recent r where r.is_other order by r.revision desc limit 1)),
  coverage as materialized (
    select c.container_name as container, c.image_digest as digest, c.reason
    from asked a
    cross join lateral runtime_coverage_of(
      'primary', a.namespace, a.workload_kind, a.workload_name, null, null, ${WINDOW_HOURS}) c
    where json_array_length(a.containers) > 0),
  files as materialized (
    select c.container, f.*
    from asked a
    cross join json_to_recordset(a.containers) c(container text, digests text[])
    cross join lateral (
      select e.*, row_number() over (order by e.last_seen desc, e.path, e.kind, e.image_digest) as place,
             count(*) over () as total,
             array_remove(array[${UNSHIPPED_ORIGINS.map(
               (origin) => `
               case when bool_or(e.origin = '${origin}') over () then '${origin}' end`,
             ).join(',')}], null) as origins
      from (
        select e.path, e.kind, e.origin, e.image_digest, e.path_complete, e.first_seen, e.last_seen
        from unnest(c.digests) d(digest)
        cross join lateral (
          select e.* from runtime_executable e
          where e.pod_namespace = a.namespace and e.workload_kind = a.workload_kind
            and e.workload_name = a.workload_name and e.container_name = c.container and e.image_digest = d.digest
            and e.cluster_id = 'primary' and e.origin in (${ORIGINS}) and e.last_seen >= a.retention_start
          offset 0) e
        limit ${MAX_ROWS}) e) f
    where f.place <= a.max_files)
  select (select json_build_object(
            'revision', e.revision, 'contentHash', e.content_hash, 'mode', e.mode, 'artifacts', e.artifacts,
            'exportedAt', wire_time(e.exported_at) || 'Z', 'images', e.images, 'podSecurity', e.pod_security)
          from exported e) as export,
         (select coalesce(json_agg(json_build_object(
                   'revision', v.revision, 'createdAt', wire_time(v.created_at) || 'Z', 'podSecurityHash', v.hash,
                   'podSecurity', v.snapshot -> 'podSecurity') order by v.revision desc), '[]')
          from versions v) as versions,
         (select exists (
            select from runtime_coverage c
            where c.pod_namespace = a.namespace and c.workload_kind = a.workload_kind
              and c.workload_name = a.workload_name and c.cluster_id = 'primary')
          from asked a) as "isWatched",
         (select coalesce(json_agg(c), '[]') from coverage c) as coverage,
         (select coalesce(json_agg(json_build_object(
                   'container', u.container, 'files', u.files, 'total', u.total, 'origins', u.origins)), '[]')
          from (
            select f.container, f.total, f.origins,
                   json_agg(json_build_object(
                     'path', f.path, 'kind', f.kind, 'origin', f.origin, 'digest', f.image_digest,
                     'pathComplete', f.path_complete, 'firstSeen', wire_time(f.first_seen) || 'Z',
                     'lastSeen', wire_time(f.last_seen) || 'Z') order by f.place) as files
            from files f
            group by f.container, f.total, f.origins) u) as unshipped`)

/**
 * Reads what the workload is compared with. `rows` is its inventory, `retentionDays` how long files that ran are kept
 * after they were last seen (0: for ever).
 */
export async function readDriftFacts(
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  rows: readonly InventoryRow[],
  { retentionDays }: { readonly retentionDays: number },
): Promise<DriftFacts> {
  const digests = new Map<string, string[]>()
  for (const { container, digest } of runningPairs(rows))
    digests.set(container, [...(digests.get(container) ?? []), digest])
  const containers = [...digests].map(([container, own]) => ({ container, digests: own }))
  const maxFiles = Math.min(MAX_FILES, Math.max(1, Math.floor(MAX_ALL_FILES / Math.max(1, containers.length))))
  const [facts] = await gate((sql) =>
    READ(sql, namespace, kind, name, JSON.stringify(containers), maxFiles, retentionDays),
  )
  return facts!
}
