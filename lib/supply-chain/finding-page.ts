/**
 * The findings of an image, those of its sources merged, a page at a time.
 *
 * The primary key of the findings of a payload is the order of the list, so a page is read off it: the payloads are walked side by side
 * from where the page begins, and a row is passed over for which another payload has a better one, the same vulnerability, package and
 * version with a worse severity, or with the same by an earlier source. So a merged finding stands where its best row stands, and
 * however long the list is, a page takes little more than its own rows. Only then are the rows of all sources fetched for it.
 */
import { fixed, type Gate } from '../db/index.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import { writeCursor } from './cursor.ts'
import { Finding } from './finding.ts'
import { SOURCES, shownSources, type WireNames } from './names.ts'
import { effective, readReports, reportList } from './reports.ts'
import { SEVERITIES, severityRuns } from './severity.ts'

/** Where a page ended: the number of a severity, the id of a vulnerability, the name of a package and its version. */
export type FindingPlace = readonly [severity: number, id: string, packageName: string, installedVersion: string]

export interface FindingFilter {
  readonly severities: readonly number[]
  /** Null for both. */
  readonly fixable: boolean | null
  /** Null for any, empty for none. */
  readonly source: string | null
  /** Null for any, each. */
  readonly vulnId: string | null
  readonly package: string | null
  readonly kev: boolean | null
  readonly epssMin: number | null
}

const KEY = ['severity', 'vuln_id', 'package_name', 'installed_version']
const key = (alias: string) => KEY.map((name) => `${alias}.${name}`).join(', ')
const ALL = `'{${SEVERITIES.map((_, number) => number).join(',')}}'::smallint[]`

const ofSource = (source: string, column: string) => `(select e.${column} from effective e where e.source = '${source}')`

/** The rows of a source among the payloads that answer. */
const isOf = (alias: string, source: string) => `${alias}.digest = ${ofSource(source, 'digest')} and ${alias}.source = '${source}'`

/** The same finding, whatever its severity: all are listed, so that the primary key finds it. */
const isSame = (alias: string, other: string) =>
  `${alias}.severity = any (${ALL}) and ${KEY.slice(1)
    .map((name) => `${alias}.${name} = ${other}.${name}`)
    .join(' and ')}`

const each = (part: (source: string, alias: string) => string, separator: string) =>
  SOURCES.map((source, i) => part(source, 'abc'[i]!)).join(separator)

const walk = (source: string) => `
      (select f.source, ${key('f')}, f.fixed_versions
       from image_finding f
       where ${isOf('f', source)} and (${key('f')}) > (${key('run')}) and f.severity <= run.last
       order by ${key('f')})`

// Both below are sub-selects with a limit and not exists(): that would be joined, which for a payload that PostgreSQL believes to be short means
// to read all of it.

/** As good is enough for a source with an earlier name; of its own a row has no other. All of it is found by the key. */
const hasNoBetter = (source: string) => `(
        select true from image_finding g
        where ${isOf('g', source)} and ${isSame('g', 'f')}
          and g.severity <= case when f.source = '${source}' then -1 when f.source > '${source}' then f.severity else f.severity - 1 end::smallint
        limit 1) is null`

const hasFix = (source: string) => `coalesce((
        select cardinality(g.fixed_versions) > 0 from image_finding g
        where f.source <> '${source}' and ${isOf('g', source)} and ${isSame('g', 'f')} limit 1), false)`

const first = (name: string) => `coalesce(${each((_, alias) => `${alias}.${name}`, ', ')})`

/** Of six severities not more can stand apart. PostgreSQL would think of a hundred. */
const MAX_RUNS = SEVERITIES.length / 2

/** What sources describe a finding with: of each, what the first source by name knows. */
const DESCRIPTIVE = ['title', 'primary_url', 'target', 'class', 'published_at', 'last_modified_at']

// The limit ends the search at the severity where it is found, which is the same of most sources.
const rowOf = (source: string, alias: string) => `
    left join lateral (
      select * from image_finding g
      where ${isOf('g', source)} and ${isSame('g', 'p')} and g.severity >= p.severity
      limit 1) ${alias} on true`

const nameIfAny = (source: string, alias: string) => `case when ${alias}.source is not null then ${ofSource(source, 'shown')} end`

// Each text once, at the first source that gives it.
const fixedVersions = `array(
             select v.version
             from (${each((_, alias) => `select '${alias}' as source, unnest(${alias}.fixed_versions) as version`, ' union all ')}) v
             group by v.version
             order by min(v.source), v.version collate "C")`

/**
 * The vulnerabilities that the filters leave, of all rows of the payloads: what is known of a vulnerability is not in the order of the list.
 * That is a look at each row, of which payloads have a bounded number, before the walk.
 */
const WANTED = `
  wanted as materialized (
    select v.vuln_id
    from (select distinct f.vuln_id
          from effective e
          cross join asked a
          cross join lateral (select f.vuln_id, f.package_name from image_finding f where f.digest = e.digest and f.source = e.source offset 0) f
          where (a.vuln is null or upper(f.vuln_id) = any (a.names)) and (a.package is null or f.package_name = a.package)) v
    cross join asked a
    cross join lateral known_facts(v.vuln_id) k
    where (a.kev is null or k.kev = a.kev) and (a.epss is null or k.epss >= a.epss)),`
const IS_WANTED = `
        where w.vuln_id in (select v.vuln_id from wanted v)
          and ((select a.package from asked a) is null or w.package_name = (select a.package from asked a))`

/** `head`, `wanted` and `isWanted` are empty where no filter needs them; `n` is how many values precede. */
const findings = (n: number, head: string, wanted: string, isWanted: string) =>
  fixed(`
  with ${head} effective as materialized (
    select e.*, coalesce($${n + 1}::text::json ->> e.source, e.source) as shown from (${effective('vulnerabilities', `$${n + 2}`, `$${n + 3}`)}) e),
  ${wanted}
  page as materialized (
    select ${key('f')}, row_number() over (order by ${key('f')}) as n
    from (select *
          from json_to_recordset($${n + 4}::text::json) r(severity smallint, last smallint, vuln_id text, package_name text, installed_version text)
          limit ${MAX_RUNS}) run
    cross join lateral (
      select ${key('f')}
      -- The offset keeps the conditions out of the walks: each is to give its next row, whether or not that counts.
      from (select * from (${each(walk, ' union all')}) w ${isWanted} order by ${key('w')} offset 0) f
      where ${each(hasNoBetter, ' and')}
        and ($${n + 5}::boolean is null or $${n + 6} = (cardinality(f.fixed_versions) > 0 or ${each(hasFix, ' or ')}))
      order by ${key('f')}
      limit $${n + 7}) f
    order by ${key('f')}
    limit $${n + 8}),
  merged as (
    select p.n, p.severity as rank, p.package_name,
           p.vuln_id                                                   as id,
           json_build_object('name', p.package_name, 'type', ${first('package_type')}, 'purl', ${first('package_purl')}) as package,
           aliases_of(p.vuln_id)                                       as aliases,
           p.installed_version,
           ${fixedVersions}                                            as fixed_versions,
           greatest(${each((_, alias) => `cardinality(${alias}.fixed_versions)`, ', ')}) > 0 as fixable,
           severity_name(p.severity)                             as severity,
           greatest(${each((_, alias) => `${alias}.score`, ', ')})     as score,
           coalesce(c.cvss, '{}') || coalesce(b.cvss, '{}') || coalesce(a.cvss, '{}') as cvss,
           ${DESCRIPTIVE.map((name) => `${first(name)} as ${name}`).join(', ')},
           coalesce(${each((_, alias) => `nullif(${alias}.file_paths, '{}')`, ', ')}, '{}') as file_paths,
           ${each((_, alias) => `coalesce(${alias}.omitted, 0)`, ' + ')} as omitted,
           k.kev, k.kev_date_added, k.epss, k.epss_percentile,
           array_remove(array[${each(nameIfAny, ', ')}], null)         as sources,
           array(select distinct d.digest collate "C" from unnest(array[${each((_, alias) => `${alias}.digest`, ', ')}]) d(digest) where d.digest is not null order by 1) as report_digests,
           null::text                                                  as in_use,
           'unknown'                                                   as in_use_state
    from page p
    ${each(rowOf, '')}
    cross join lateral known_facts(p.vuln_id) k)
  select case when m.n is null or m.n = 1 then ${reportList('vulnerabilities', 'effective', 'e.source')} end,
         m.rank::text, m.id, m.package_name, m.installed_version, ${plainColumns(Finding, 'm')}
  from (values (1)) one(row)
  left join merged m on true
  order by m.n`)

const FINDINGS = findings(0, '', '', '')
const ASKED = `asked as materialized (
    select $1::text as vuln, $2::text as package, $3::boolean as kev, $4::float8 as epss, vuln_names($5) as names),`
const FILTERED = findings(5, ASKED, WANTED, IS_WANTED)

/** What precedes the record in a row: the reports, in the first row alone, and its place. */
const PLACE = 1
const RECORD = PLACE + KEY.length

/** Where to walk. */
function runsOf(severities: readonly number[], [from, id, packageName, installedVersion]: FindingPlace) {
  const place = { vuln_id: id, package_name: packageName, installed_version: installedVersion }
  const start = { vuln_id: '', package_name: '', installed_version: '' }
  return severityRuns(severities, from).map((run) => ({ ...run, ...(run.severity === from ? place : start) }))
}

function placeOf(row: RawRow): FindingPlace {
  const [severity, id, packageName, installedVersion] = row.slice(PLACE, RECORD).map(String)
  return [Number(severity), id!, packageName!, installedVersion!]
}

/** The reports that answer for a digest, and a page of their merged findings as JSON (interop-supply-chain 3.2). */
export async function readFindings(
  gate: Gate,
  digest: string,
  filter: FindingFilter,
  { limit, after }: { limit: number; after: FindingPlace | null },
  names: WireNames,
) {
  const runs = JSON.stringify(runsOf(filter.severities, after ?? [0, '', '', '']))
  const { source, fixable, vulnId, package: packageName, kev, epssMin } = filter
  const values = [shownSources(names), digest, source, runs, fixable, fixable, limit + 1, limit + 1]
  const isFiltered = [vulnId, packageName, kev, epssMin].some((one) => one !== null)
  const rows: RawRow[] = await gate((sql) =>
    (isFiltered ? FILTERED(sql, vulnId, packageName, kev, epssMin, vulnId, ...values) : FINDINGS(sql, ...values)).raw(),
  )
  const items = rows.slice(0, limit).filter((row) => row[PLACE] !== null)
  const last = rows.length > limit ? items.at(-1)! : null
  return {
    reports: readReports(rows[0]![0]!, names),
    items: plainRows(Finding, items, RECORD),
    nextAfter: last && writeCursor(placeOf(last)),
  }
}
