/** What makes lists long: images with hundreds of packages and findings, and stored profiles of many workloads. */
import { type Image, pick, type Workload } from './cluster.ts'
import { TEAMS } from './names.ts'
import { type Advisory, type Package, purlOf } from './packages.ts'
import type { Site } from './site.ts'
import { packagesOf, postReport, postSbom, signedResult } from './supply-chain.ts'

const AT_ONCE = 8
const KINDS = ['', '-common'] as const
const SEVERITIES: readonly Advisory['severity'][] = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW']
const SCORES = [9.1, 7.5, 5.3, 3.1]
const FIRST_ID = 20_000
/** Of five packages an image has so many, and of five vulnerabilities of those. */
const HAS_IN_FIVE = 4
const LEFT_IN_FIVE = 2
const ADVISORIES_OF_PACKAGE = 2

/** Hundreds of packages of Debian. */
export const MANY_PACKAGES: readonly Package[] = Object.values(TEAMS)
  .flat()
  .flatMap((thing) =>
    KINDS.map((kind) => ({
      ...{ name: `lib${thing}${kind}`, version: `1.${pick(thing, 20)}.${pick(kind + thing, 9)}-1`, type: 'debian' },
      ...{ license: 'MIT', files: [`usr/lib/x86_64-linux-gnu/lib${thing}${kind}.so.1`] },
    })),
  )

const FINDINGS: readonly { readonly id: string; readonly of: Package; readonly severity: number }[] =
  MANY_PACKAGES.flatMap((of, p) =>
    Array.from({ length: ADVISORIES_OF_PACKAGE }, (_, i) => {
      const id = `CVE-2024-${FIRST_ID + ADVISORIES_OF_PACKAGE * p + i}`
      return { id, of, severity: pick(id, SEVERITIES.length) }
    }),
  )

function finding({ id, of, severity }: (typeof FINDINGS)[number]): object {
  const isFixed = pick(`${id}/fixed`, 3) > 0
  return {
    ...{ id, severity: SEVERITIES[severity], score: SCORES[severity], title: `${of.name}: out-of-bounds read` },
    package: { name: of.name, version: of.version, type: of.type, purl: purlOf(of) },
    ...(isFixed ? { fixed_version: `${of.version}+deb12u1`, status: 'fixed' } : { status: 'affected' }),
    ...{ primary_url: `https://avd.aquasec.com/nvd/${id.toLowerCase()}`, class: 'os-pkgs', target: 'debian 12.4' },
    ...{ file_paths: of.files, kev: false, epss: pick(id, 900) / 1_000, epss_percentile: pick(id, 999) / 1_000 },
  }
}

/** Reports, SBOMs and signatures of all images; the first one has every package and every finding. */
export async function postManyImages(site: Site, workloads: readonly Workload[]): Promise<void> {
  const images = [...new Map(workloads.map(({ image }) => [image.digest, image])).values()]
  let next = 0
  const work = async () => {
    while (next < images.length) {
      const isFirst = next === 0
      await postImage(site, images[next++]!, isFirst)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

async function postImage(site: Site, image: Image, hasAll: boolean): Promise<void> {
  const has = (what: string, inFive: number) => hasAll || pick(`${image.digest}/${what}`, 5) < inFive
  const packages = MANY_PACKAGES.filter(({ name }) => has(name, HAS_IN_FIVE))
  const names = new Set(packages.map(({ name }) => name))
  const findings = FINDINGS.filter(({ id, of }) => names.has(of.name) && has(id, LEFT_IN_FIVE))
  await postReport(site, image, packagesOf(image), findings.map(finding))
  await postSbom(site, image, [...packagesOf(image), ...packages])
  await site.post(`/images/${image.digest}/attestation`, signedResult(site, image))
}

/** Stores for so many workloads that have no profile the one of another workload, whose profile is stored. */
export async function copyProfiles({ sql }: Site, workloads: number): Promise<void> {
  await sql`
    with given as (
      select p.*, row_number() over (order by p.pod_namespace, p.workload_kind, p.workload_name) - 1 as n,
             count(*) over () as of_all
      from workload_profile p),
    lacking as (
      select distinct p.pod_namespace, p.workload_kind, p.workload_name
      from pod p
      where p.workload_name is not null
        and not exists (
          select from workload_profile k
          where k.pod_namespace = p.pod_namespace and k.workload_kind = p.workload_kind
            and k.workload_name = p.workload_name)
      order by 1, 2, 3
      limit ${workloads}),
    made as (
      select l.*, row_number() over () as n from lacking l),
    listed as (
      insert into workload_profile
      select g.cluster_id, m.pod_namespace, m.workload_kind, m.workload_name, g.revision, g.content_hash,
             g.posture_status, g.summary, g.has_drift, g.is_full, g.computed_at, g.last_changed_at
      from made m
      join given g on g.n = m.n % g.of_all)
    insert into workload_profile_version
    select v.cluster_id, m.pod_namespace, m.workload_kind, m.workload_name, v.revision, v.content_hash,
           v.dimension_hashes, v.posture, v.snapshot, v.created_at
    from made m
    join given g on g.n = m.n % g.of_all
    join workload_profile_version v
      on v.pod_namespace = g.pod_namespace and v.workload_kind = g.workload_kind
     and v.workload_name = g.workload_name and v.revision = g.revision`
}
