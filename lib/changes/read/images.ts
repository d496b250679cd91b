/** Reads what the SBOMs, reports and checks of images say about both sides of a diff (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { PREFERRED } from '../../supply-chain/sbom.ts'
import { type ComponentCount, type ComponentsDiff, componentsDiff } from '../components.ts'
import { type FindingPair, type FindingSide, type FindingsDiff, findingsDiff } from '../findings.ts'
import { compareTexts } from '../listed.ts'
import { type Gap, gap, type Known, known, type Part, type Reason, unknown } from '../not-known.ts'

/** Rows of differing components, and of differing findings, that are read; a diff with more is `too_many`. */
export const MAX_DIFFERENCES = 20_000

/** The images of either side. An image may be on both. */
export interface Sides {
  readonly before: readonly string[]
  readonly after: readonly string[]
}

const sidesJson = ({ before, after }: Sides) =>
  JSON.stringify([...before.map((digest) => ({ side: 0, digest })), ...after.map((digest) => ({ side: 1, digest }))])

/** Images without a report of a kind, and the sources that all images have. */
interface Answering {
  readonly missing: readonly string[]
  readonly sources: readonly string[]
}

const ASKED = `
  asked as materialized (
    select p.side, p.digest collate "C" as digest from json_to_recordset($1::text::json) p(side integer, digest text))`
const MISSING = `
  (select coalesce(json_agg(distinct a.digest), '[]')
   from asked a where not exists (select from reports r where r.image = a.digest)) as missing`
/** The sources of which each image has a report: another scanner finds and names other things. */
const COMMON = `
  common as materialized (
    select r.source from reports r
    group by r.source
    having count(distinct r.image) = (select count(distinct a.digest) from asked a))`

const side = (what: string, n: 0 | 1) => `${what} filter (where r.side = ${n})`

// An index may have SBOMs of several platforms: compared is a platform that all images have. The only SBOM of an image
// counts whatever its platform, unless the only ones of two indexes are known to be of different platforms.
// A purl is compared without version, qualifiers and subpath: an architecture or a release of a distribution makes no
// other component. The version follows the last "@" behind the last "/".
const COMPONENTS = fixed<[Answering & { deltas: ComponentCount[] }]>(`
  with ${ASKED},
  reports as materialized (
    select a.side, a.digest as image, e.digest, e.source, p.platform,
           count(*) over (partition by a.side, a.digest, e.source) = 1 as is_only,
           row_number() over (partition by a.side, a.digest, e.source, p.platform order by e.digest) as nth
    from asked a
    cross join lateral answering_reports(a.digest, 'sbom') e
    left join lateral (
      select min(m.key) as platform
      from image_report r cross join lateral jsonb_each_text(r.platform_manifests) m(key, digest)
      where r.digest = e.digest and r.source = e.source and r.kind = 'sbom' and m.digest = e.digest
      offset 0) p on true),
  common as materialized (
    select c.source, c.platform
    from (select r.image, r.source, r.platform, r.platform as known from reports r where r.platform is not null
          union all
          select r.image, r.source, null, case when r.digest <> r.image then r.platform end
          from reports r where r.is_only) c
    group by c.source, c.platform
    having count(distinct c.image) = (select count(distinct a.digest) from asked a) and count(distinct c.known) <= 1),
  chosen as materialized (
    select e.source, e.platform
    from (select c.source, c.platform, null::text as digest from common c) e
    order by ${PREFERRED}, e.platform nulls first limit 1),
  counts as materialized (
    select c.name collate "C" as name, c.purl collate "C" as purl, c.type collate "C" as type,
           c.version collate "C" as version, ${side('count(*)', 0)} as before, ${side('count(*)', 1)} as after
    from reports r
    join chosen h on h.source = r.source and (h.platform is null or h.platform = r.platform)
    cross join lateral (
      select m.name, m.version,
             regexp_replace(split_part(split_part(m.purl, '?', 1), '#', 1), '@[^/@]*$', '') as purl,
             case when m.purl is null then coalesce(m.type, '') end as type
      from image_component m
      where m.digest = r.digest and m.source = r.source
      offset 0) c
    where r.nth = 1
    group by 1, 2, 3, 4
    having ${side('count(*)', 0)} <> ${side('count(*)', 1)}
    limit ${MAX_DIFFERENCES + 1})
  select ${MISSING},
         (select coalesce(json_agg(h.source), '[]') from chosen h) as sources,
         (select coalesce(json_agg(json_build_object('name', c.name, 'purl', c.purl, 'type', c.type, 'version',
                                                     c.version, 'from', c.before, 'to', c.after)), '[]')
          from counts c) as deltas`)

interface FindingRow {
  readonly id: string
  readonly package: string
  readonly kev: boolean | null
  readonly epss: number | null
  /** Severity, installed and fixed versions; the severity is null on the side that does not have it. */
  readonly from: readonly [number | null, string[] | null, string[] | null]
  readonly to: readonly [number | null, string[] | null, string[] | null]
}

const SIDE_OF_FINDING = (n: 0 | 1) => `
      min(f.severity) filter (where f.side = ${n}), array_agg(distinct f.installed_version) filter (where f.side = ${n}),
      array_agg(distinct f.fixed) filter (where f.side = ${n} and f.fixed is not null)`

const FINDINGS = fixed<[Answering & { pairs: FindingRow[] }]>(`
  with ${ASKED},
  reports as materialized (
    select a.side, a.digest as image, e.digest, e.source
    from asked a
    cross join lateral answering_reports(a.digest, 'vulnerabilities') e),
  ${COMMON},
  pairs as materialized (
    select f.vuln_id, f.package_name, json_build_array(${SIDE_OF_FINDING(0)}) as before,
           json_build_array(${SIDE_OF_FINDING(1)}) as after
    from (
      select r.side, f.vuln_id, f.package_name, f.severity, f.installed_version, x.version as fixed
      from reports r
      join common c on c.source = r.source
      cross join lateral (
        select f.* from image_finding f where f.digest = r.digest and f.source = r.source offset 0) f
      left join lateral unnest(f.fixed_versions) x(version) on true) f
    group by f.vuln_id, f.package_name
    having (${SIDE_OF_FINDING(0)}) is distinct from (${SIDE_OF_FINDING(1)})
    limit ${MAX_DIFFERENCES + 1})
  select ${MISSING},
         (select coalesce(json_agg(c.source order by c.source), '[]') from common c) as sources,
         (select coalesce(json_agg(json_build_object('id', p.vuln_id, 'package', p.package_name, 'kev', k.kev,
                                                     'epss', k.epss, 'from', p.before, 'to', p.after)), '[]')
          from pairs p
          cross join lateral current_facts(p.vuln_id) k) as pairs`)

/** A diff of what sources say, with the sources that were compared, as they are stored. */
export interface Compared<T> {
  readonly sources: readonly string[]
  readonly diff: T
}

function answered<T>(part: Part, without: Reason, { missing, sources }: Answering, count: number, diff: () => T) {
  const gaps: Gap[] = [...missing].sort(compareTexts).map((digest) => gap(part, without, { digest }))
  if (gaps.length > 0) return unknown(...gaps)
  if (sources.length === 0) return unknown(gap(part, 'no_common_source'))
  return count > MAX_DIFFERENCES ? unknown(gap(part, 'too_many')) : known({ sources, diff: diff() })
}

const isNone = ({ before, after }: Sides) => before.length + after.length === 0

/** Compares the SBOMs of images, each by the source that all of them have. */
export async function readComponentsDiff(gate: Gate, sides: Sides): Promise<Known<Compared<ComponentsDiff>>> {
  if (isNone(sides)) return known({ sources: [], diff: componentsDiff([]) })
  const [found] = await gate((sql) => COMPONENTS(sql, sidesJson(sides)))
  const { deltas } = found!
  return answered('components', 'no_sbom', found!, deltas.length, () => componentsDiff(deltas))
}

const sideOf = ([severity, versions, fixed]: FindingRow['from']): FindingSide | null =>
  severity === null
    ? null
    : {
        severity,
        versions: (versions ?? []).sort(compareTexts),
        fixedVersions: (fixed ?? []).sort(compareTexts),
      }

/** Compares the findings of images by the sources that all of them have. */
export async function readFindingsDiff(gate: Gate, sides: Sides): Promise<Known<Compared<FindingsDiff>>> {
  if (isNone(sides)) return known({ sources: [], diff: findingsDiff([]) })
  const [found] = await gate((sql) => FINDINGS(sql, sidesJson(sides)))
  const { pairs } = found!
  return answered('findings', 'no_report', found!, pairs.length, () =>
    findingsDiff(pairs.map((one): FindingPair => ({ ...one, from: sideOf(one.from), to: sideOf(one.to) }))),
  )
}

/** The result of the last check of an image; its fields are null where none is kept. */
export interface SignatureAt {
  readonly digest: string
  readonly verdict: string | null
  readonly reason: string | null
  readonly signers: readonly Record<string, unknown>[]
  readonly checkedAt: string | null
}

const SIGNATURES = fixed<[{ found: SignatureAt[] }]>(`
  with asked as materialized (
    select $1::text::json as digests, retention_start($2::integer) as retention_start)
  select coalesce(json_agg(json_build_object(
           'digest', d.digest, 'verdict', t.verdict, 'reason', t.reason, 'signers', coalesce(t.signers, '[]')::json,
           'checkedAt', wire_time(t.checked_at)) order by d.digest), '[]') as found
  from asked a
  cross join lateral (
    select distinct x.digest collate "C" as digest from json_array_elements_text(a.digests) x(digest)) d
  left join image_attestation t on t.digest = d.digest and t.checked_at >= a.retention_start`)

/** Reads the results of all these images, by digest. */
export async function readSignatures(
  gate: Gate,
  digests: readonly string[],
  retentionDays: number,
): Promise<readonly SignatureAt[]> {
  if (digests.length === 0) return []
  const [row] = await gate((sql) => SIGNATURES(sql, JSON.stringify(digests), retentionDays))
  return row!.found
}
