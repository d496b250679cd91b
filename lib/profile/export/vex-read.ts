/** Reads the vulnerable packages of a workload that were never seen in use (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import type { WorkloadKey } from '../built.ts'

/** Findings that are looked at for a document. */
export const MAX_STATEMENT_ROWS = 20_000

/** A finding as read: vulnerability, package, its version (empty if unknown) and its package URL. */
export type UnusedFinding = readonly [id: string, packageName: string, version: string, purl: string | null]

/** An image of which all containers of the workload were watched. Times are naive UTC. */
export interface WatchedImage {
  readonly digest: string
  readonly repository: string | null
  /** As the pod spec writes it. */
  readonly imageRef: string
  /** Sorted. */
  readonly containers: readonly string[]
  /** Since when all of them were watched. */
  readonly since: string
  /** In order, each once. */
  readonly findings: readonly UnusedFinding[]
}

export interface Unused {
  /** Whether any report about any image of the workload has a finding. */
  readonly hasFindings: boolean
  /** When the containers were judged; null before the first time. */
  readonly judgedAt: string | null
  readonly images: readonly WatchedImage[]
}

// A finding is unused only if no container of the workload used its package in any version, all were watched, and all
// files of the package are known (docs/contract.md#in-use). "is true" keeps the lists in hashes. Rows beyond the bound,
// and the other rows of the finding that the bound cuts, count for nothing.
const UNUSED = fixed<{ facts: string; image: string | null }[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name),
  containers as materialized (
    select w.image_digest, w.container_name, w.image_ref,
           u.image_digest is not null and u.reason is null and u.observed_since is not null as is_watched,
           u.observed_since
    from asked a
    join workload_container w
      on w.pod_namespace = a.namespace and w.workload_kind = a.kind and w.workload_name = a.name
    left join container_use u on u.image_digest = w.image_digest and u.pod_namespace = w.pod_namespace
      and u.workload_kind = w.workload_kind and u.workload_name = w.workload_name
      and u.container_name = w.container_name and u.cluster_id = w.cluster_id),
  images as materialized (
    select c.image_digest, bool_and(c.is_watched) as is_watched, max(c.observed_since) as since,
           min(c.image_ref collate "C") as image_ref, array_agg(distinct c.container_name) as names
    from containers c
    group by c.image_digest),
  payloads as materialized (
    select i.image_digest, e.digest, e.source
    from images i cross join lateral answering_reports(i.image_digest, 'vulnerabilities') e),
  watched as materialized (
    select i.* from images i where i.is_watched and is_use_current(i.image_digest)),
  rows as materialized (
    select p.image_digest, f.vuln_id, f.package_name, f.installed_version, f.package_purl,
           package_coverage(f.package_type, f.class, f.package_purl) <> 'interpreted' as is_observable
    from payloads p
    join watched w on w.image_digest = p.image_digest
    cross join lateral (
      select f.* from image_finding f where f.digest = p.digest and f.source = p.source offset 0) f
    order by p.image_digest, f.vuln_id, f.package_name, f.installed_version
    limit ${MAX_STATEMENT_ROWS + 1}),
  cut as materialized (
    select r.image_digest, r.vuln_id, r.package_name, r.installed_version
    from rows r
    order by r.image_digest, r.vuln_id, r.package_name, r.installed_version
    offset ${MAX_STATEMENT_ROWS} limit 1),
  findings as materialized (
    select r.image_digest, r.vuln_id, r.package_name, r.installed_version, min(r.package_purl collate "C") as purl
    from rows r
    where ((r.image_digest, r.vuln_id, r.package_name, r.installed_version)
           in (select c.image_digest, c.vuln_id, c.package_name, c.installed_version from cut c)) is not true
    group by r.image_digest, r.vuln_id, r.package_name, r.installed_version
    having bool_and(r.is_observable)),
  unused as materialized (
    select f.*
    from findings f
    where ((f.image_digest, f.package_name) in (
             select s.image_digest, n.name from watched w
             join summary_image s on s.image_digest = w.image_digest
             cross join unnest(s.whole_packages) n(name))) is true
      and ((f.image_digest, f.package_name) in (
             select s.image_digest, n.name from watched w
             join summary_image s on s.image_digest = w.image_digest
             cross join unnest(s.cut_packages) n(name))) is not true
      and ((f.image_digest, f.package_name) in (
             select p.image_digest, p.package_name
             from asked a
             join watched w on true
             join package_use p on p.image_digest = w.image_digest and p.pod_namespace = a.namespace
               and p.workload_kind = a.kind and p.workload_name = a.name)) is not true)
  select json_build_object(
           'hasFindings', exists (
             select from payloads p
             join image_finding f on f.digest = p.digest and f.source = p.source),
           'judgedAt', (select wire_time(c.refreshed_at) from cve_summary_state c where c.is_only))::text as facts,
         json_build_object(
           'digest', w.image_digest, 'repository', m.repository, 'imageRef', w.image_ref,
           'containers', to_json(w.names), 'since', wire_time(w.since), 'findings', u.findings)::text as image
  from (values (1)) one(row)
  left join (
    select u.image_digest,
           json_agg(json_build_array(u.vuln_id, u.package_name, u.installed_version, u.purl)
                    order by u.vuln_id, u.package_name, u.installed_version) as findings
    from unused u
    group by u.image_digest) u on true
  left join watched w on w.image_digest = u.image_digest
  left join image m on m.digest = w.image_digest
  order by w.image_digest`)

export async function readUnused(gate: Gate, { namespace, kind, name }: WorkloadKey): Promise<Unused> {
  const rows = await gate((sql) => UNUSED(sql, namespace, kind, name))
  const images = rows.map(({ image }) => JSON.parse(image!) as WatchedImage & { digest: string | null })
  return { ...JSON.parse(rows[0]!.facts), images: images.filter(({ digest }) => digest !== null) }
}
