/** The expected summary of vulnerabilities, computed from the stored rows one by one (docs/contract.md#findings). */
import type postgres from 'postgres'
import { type AliasClaim, storedId } from './alias-model.ts'

export interface SummaryRow {
  vuln_id: string
  scope_namespace: string
  severity: number
  max_score: number | null
  is_fixable: boolean
  kev: boolean | null
  max_epss: number | null
  packages: string[]
  package_count: number
  /** The key columns. */
  all_packages: string[]
  sources: string[]
  images: number
  workloads: number
  running_workloads: number
  namespaces: number
  join_rank: number
}

interface Finding {
  digest: string
  source: string
  severity: number
  vuln_id: string
  package_name: string
  fixed_versions: string[]
  score: number | null
  kev: boolean | null
  epss: number | null
  aliases: string[]
}

interface Link {
  digest: string
  source: string
  image_digest: string
  join_rank: number
  scanned_at: string
  /** Whether it was posted for a manifest of the image, which is an index. */
  is_platform: boolean
}

interface Workload {
  image_digest: string
  pod_namespace: string
  key: string
  running: boolean
}

const distinct = <T>(values: T[]) => [...new Set(values)]
const highest = (values: (number | null)[]) =>
  values.reduce((a, b) => (a === null ? b : b === null ? a : Math.max(a, b)), null)

/** The stored summary, in the order of `expectedSummary`. */
export const storedSummary = async (sql: postgres.Sql): Promise<SummaryRow[]> =>
  sorted(
    await sql<SummaryRow[]>`
      select s.vuln_id, s.scope_namespace, s.severity::int, d.max_score::float8, s.is_fixable, f.kev, f.epss::float8 as max_epss,
             array_to_json(d.packages) as packages, d.package_count::int,
             (select json_agg(p.package_name order by p.package_name) from cve_package p where p.vuln_id = s.vuln_id) as all_packages,
             array_to_json(d.sources) as sources, s.images::int, s.workloads::int,
             s.running_workloads::int, s.namespaces::int, s.join_rank::int
      from cve_summary s left join cve_detail d on d.vuln_id = s.vuln_id left join cve_fact f on f.vuln_id = s.vuln_id`,
  )

const sorted = (rows: readonly SummaryRow[]) =>
  [...rows]
    .map((row) => ({ ...row }))
    .sort((a, b) => (`${a.vuln_id} ${a.scope_namespace}` < `${b.vuln_id} ${b.scope_namespace}` ? -1 : 1))

/**
 * The payloads of one source that count for an image: the one of its own digest, else those by digest, else the newest
 * guess.
 */
function standing(links: readonly Link[]): Link[] {
  const newest = (some: readonly Link[]) =>
    [...some]
      .sort((a, b) =>
        a.scanned_at === b.scanned_at ? (a.digest < b.digest ? -1 : 1) : a.scanned_at < b.scanned_at ? 1 : -1,
      )
      .slice(0, 1)
  const own = links.filter((link) => link.digest === link.image_digest)
  if (own.length > 0) return own
  const exact = links.filter((link) => link.join_rank < 3)
  if (exact.length === 0) return newest(links)
  // The newest of each platform.
  return [...exact.filter((link) => link.is_platform), ...newest(exact.filter((link) => !link.is_platform))]
}

export async function expectedSummary(sql: postgres.Sql, windowSecs: number): Promise<SummaryRow[]> {
  // By the posted id, even if the row is stored under another one.
  const sent = await sql<Finding[]>`
    select f.digest, f.source, f.severity::int, f.vuln_id, f.package_name, array_to_json(f.fixed_versions) as fixed_versions, f.score::float8,
           f.kev, f.epss::float8, array_to_json(f.aliases) as aliases
    from (select f.* from image_finding f
          where not exists (
            select from finding_sent s
            where (s.digest, s.source, s.vuln_id, s.package_name, s.installed_version)
                  = (f.digest, f.source, f.vuln_id, f.package_name, f.installed_version))
          union all
          select p.* from finding_sent s cross join lateral jsonb_populate_record(null::image_finding, s.sent) p) f`
  const claims = await sql<AliasClaim[]>`select vuln_id, alias from cve_alias`
  const findings = sent.map((finding) => ({ ...finding, vuln_id: storedId(finding, claims) }))
  const links = await sql<Link[]>`
    select l.digest, l.source, l.image_digest, l.join_rank::int, r.scanned_at::text,
           l.digest in (select p.digest from image_report p where p.index_digest = l.image_digest) as is_platform
    from image_link l join image_report r on r.digest = l.digest and r.source = l.source and r.kind = 'vulnerabilities'`
  const workloads = await sql<Workload[]>`
    select w.image_digest, w.pod_namespace, concat_ws('/', w.cluster_id, w.pod_namespace, w.workload_kind, w.workload_name) as key,
           is_running(w, ${windowSecs}) as running
    from workload_container w`

  const hits: { finding: Finding; link: Link }[] = []
  for (const image of distinct(links.map((link) => link.image_digest))) {
    if (!workloads.some((one) => one.image_digest === image)) continue
    const own = links.filter((link) => link.image_digest === image)
    for (const source of distinct(own.map((link) => link.source))) {
      for (const link of standing(own.filter((link) => link.source === source)))
        for (const finding of findings)
          if (finding.digest === link.digest && finding.source === source) hits.push({ finding, link })
    }
  }

  const rows: SummaryRow[] = []
  for (const vuln_id of distinct(hits.map(({ finding }) => finding.vuln_id))) {
    const of = hits.filter(({ finding }) => finding.vuln_id === vuln_id)
    const everywhere = findings.filter((finding) => finding.vuln_id === vuln_id)
    const known = everywhere.map(({ kev }) => kev).filter((kev) => kev !== null)
    const names = distinct(of.map(({ finding }) => finding.package_name)).sort()
    const shared = {
      vuln_id,
      severity: Math.min(...of.map(({ finding }) => finding.severity)),
      max_score: highest(of.map(({ finding }) => finding.score)),
      is_fixable: of.some(({ finding }) => finding.fixed_versions.length > 0),
      kev: known.length === 0 ? null : known.includes(true),
      max_epss: highest(everywhere.map(({ epss }) => epss)),
      packages: names.slice(0, 5),
      package_count: names.length,
      all_packages: names,
      sources: distinct(of.map(({ finding }) => finding.source)).sort(),
    }
    const namespaces = distinct(
      workloads
        .filter((one) => of.some(({ link }) => link.image_digest === one.image_digest))
        .map((one) => one.pod_namespace),
    )
    for (const scope_namespace of ['', ...namespaces]) {
      const placed = workloads.filter((one) => scope_namespace === '' || one.pod_namespace === scope_namespace)
      const counted = of.filter(({ link }) => placed.some((one) => one.image_digest === link.image_digest))
      const where = placed.filter((one) => counted.some(({ link }) => link.image_digest === one.image_digest))
      rows.push({
        ...shared,
        scope_namespace,
        images: distinct(counted.map(({ link }) => link.image_digest)).length,
        workloads: distinct(where.map(({ key }) => key)).length,
        running_workloads: distinct(where.filter(({ running }) => running).map(({ key }) => key)).length,
        namespaces: scope_namespace === '' ? namespaces.length : 1,
        join_rank: Math.max(...counted.map(({ link }) => link.join_rank)),
      })
    }
  }
  return sorted(rows)
}
