/**
 * The findings of an image, those of all its payloads merged, a page at a time.
 *
 * A merged finding stands where its best row stands. The primary key of the findings of a payload is the order of the list, so of each
 * payload the first rows from where the page begins are read, as many as a page has: those whose finding stood before that place are
 * passed over. The page is the first findings of these rows. None is missed: a payload of which not all was read has given a whole page
 * up to its last row. So however long the list is, a page takes little more than its own rows of each payload. Only then are the rows of
 * all payloads fetched for it.
 */
import { fixed, type Gate } from '../db/index.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import { type WireNames, wireSourcesJson } from '../wire-names/index.ts'
import { writeCursor } from './cursor.ts'
import { Finding } from './finding.ts'
import { answering, guessList, readGuesses, readReports, reportList } from './reports.ts'
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
/** By what findings are the same, whatever their severity. */
const IDENTITY = KEY.slice(1)
const identity = (alias: string) => IDENTITY.map((name) => `${alias}.${name}`).join(', ')

const ALL = `'{${SEVERITIES.map((_, number) => number).join(',')}}'::smallint[]`

/** The rows of a payload. */
const isOf = (alias: string, payload: string) =>
  `${alias}.digest = ${payload}.digest and ${alias}.source = ${payload}.source`

/** The same finding, whatever its severity: all are listed, so that the primary key finds it. */
const isSame = (alias: string, other: string) =>
  `${alias}.severity = any (${ALL}) and ${IDENTITY.map((name) => `${alias}.${name} = ${other}.${name}`).join(' and ')}`

// Sub-selects with a limit and not exists(): that would be joined, which for a payload that PostgreSQL believes to be short means to read
// all of it.
const inOtherPayload = (within: string, columns = '', condition = 'true') => `(
          select true
          from effective o
          cross join lateral (
            select ${columns} from image_finding g where ${isOf('g', 'o')} and ${isSame('g', 'f')} and ${within} limit 1) g
          where o.nth <> e.nth and ${condition}
          limit 1)`

/** Whether another payload has the finding of a row before where the page begins. Before the first page there is nothing to look for. */
const STOOD_BEFORE = `((run.severity > 0 or run.vuln_id <> '') and ${inOtherPayload(
  `g.severity < run.severity + case when (${identity('f')}) <= (${identity('run')}) then 1 else 0 end`,
)} is not null)`

const HAS_FIX = `(cardinality(f.fixed_versions) > 0 or ${inOtherPayload('true', 'g.fixed_versions', 'cardinality(g.fixed_versions) > 0')} is not null)`

/** Of six severities not more can stand apart. PostgreSQL would think of a hundred. */
const MAX_RUNS = SEVERITIES.length / 2

/** What sources describe a finding with: of each, what the first payload knows, by source and digest. */
const DESCRIPTIVE = ['title', 'primary_url', 'target', 'class', 'published_at', 'last_modified_at']
const first = (name: string) => `first_not_null(r.${name} order by r.nth) as ${name}`

/**
 * The vulnerabilities that the filters leave, of all rows of the payloads: what is known of a vulnerability is not in the order of the list.
 * That is a look at each row, of which a payload has a bounded number, before the walk.
 */
const WANTED = `
  wanted as materialized (
    select v.vuln_id
    from (select distinct f.vuln_id
          from effective e
          cross join asked a
          cross join lateral (select f.vuln_id, f.package_name from image_finding f where ${isOf('f', 'e')} offset 0) f
          where (a.vuln is null or upper(f.vuln_id) = any (a.names)) and (a.package is null or f.package_name = a.package)) v
    cross join asked a
    cross join lateral current_facts(v.vuln_id) k
    where (a.kev is null or k.kev = a.kev) and (a.epss is null or k.epss >= a.epss)),`

/** The rows of a payload in order. The offset keeps other conditions out of the walk: it is to give its next row, whether or not that counts. */
const ROWS = `(
          select f.*
          from image_finding f
          where ${isOf('f', 'e')} and (${key('f')}) > (${key('run')}) and f.severity <= run.last
          order by ${key('f')}
          offset 0)`

/**
 * The rows of a payload that the filters leave, in order: nothing else is looked up of those that they do not. "is true" keeps the list of
 * vulnerabilities in a hash; without it PostgreSQL would join, which in these sessions means to read the list for each row.
 */
const WANTED_ROWS = `(
          select w.*
          from ${ROWS} w
          where (w.vuln_id in (select v.vuln_id from wanted v)) is true
            and ((select a.package from asked a) is null or w.package_name = (select a.package from asked a))
          offset 0)`

/** `head`, of `n` values, and `wanted` are empty where no filter needs them; `rows` is where findings are read. */
const findings = (n: number, head: string, wanted: string, rows: string) =>
  fixed(`
  with ${head} effective as materialized (
    select e.*, coalesce($${n + 1}::text::json ->> e.source, e.source) as shown, row_number() over (order by e.source, e.digest) as nth
    from (${answering('vulnerabilities', `$${n + 2}`, `$${n + 3}`)}) e),
  ${wanted}
  page as materialized (
    select p.*, row_number() over (order by ${key('p')}) as n
    from (
      select min(f.severity) as severity, ${identity('f')}
      from (select *
            from json_to_recordset($${n + 4}::text::json) r(severity smallint, last smallint, vuln_id text, package_name text, installed_version text)
            limit ${MAX_RUNS}) run
      cross join effective e
      cross join lateral (
        select ${key('f')}
        from ${rows} f
        where not ${STOOD_BEFORE}
          and ($${n + 5}::boolean is null or $${n + 6} = ${HAS_FIX})
        order by ${key('f')}
        limit $${n + 7}) f
      group by ${identity('f')}
      order by 1, 2, 3, 4
      limit $${n + 8}) p),
  merged as (
    select p.n, p.severity as rank, p.package_name,
           p.vuln_id                                                   as id,
           json_build_object('name', p.package_name, 'type', m.package_type, 'purl', m.package_purl) as package,
           aliases_of(p.vuln_id)                                       as aliases,
           p.installed_version,
           severity_name(p.severity)                                   as severity,
           m.*,
           k.kev, k.kev_date_added, k.epss, k.epss_percentile,
           null::text                                                  as in_use,
           'unknown'                                                   as in_use_state
    from page p
    cross join lateral (
      with rows as materialized (
        select e.nth, e.shown, g.*
        from effective e
        cross join lateral (
          -- The limit ends the search at the severity where it is found, which is the same in most payloads.
          select * from image_finding g
          where ${isOf('g', 'e')} and ${isSame('g', 'p')} and g.severity >= p.severity
          limit 1) g)
      select array(select v.version
                   from rows r cross join unnest(r.fixed_versions) v(version)
                   group by v.version
                   order by min(r.source), v.version collate "C")      as fixed_versions,
             bool_or(r.fixed_versions <> '{}')                         as fixable,
             max(r.score)                                              as score,
             merged_keys(r.cvss order by r.nth)                         as cvss,
             ${['package_type', 'package_purl', ...DESCRIPTIVE].map(first).join(', ')},
             coalesce(first_not_null(nullif(r.file_paths, '{}') order by r.nth), '{}') as file_paths,
             sum(r.omitted)::bigint                                    as omitted,
             array(select min(r.shown) from rows r group by r.source order by r.source) as sources,
             array(select distinct r.digest from rows r order by 1)    as report_digests
      from rows r) m
    cross join lateral current_facts(p.vuln_id) k)
  select case when m.n is null or m.n = 1 then ${reportList('vulnerabilities', 'effective', 'e.nth')} end,
         case when m.n is null or m.n = 1 then ${guessList('vulnerabilities', `$${n + 9}`, 'effective', `$${n + 10}`)} end,
         m.rank::text, m.id, m.package_name, m.installed_version, ${plainColumns(Finding, 'm')}
  from (values (1)) one(row)
  left join merged m on true
  order by m.n`)

const FINDINGS = findings(0, '', '', ROWS)
const ASKED = `asked as materialized (
    select $1::text as vuln, $2::text as package, $3::boolean as kev, $4::float8 as epss, vuln_names($5) as names),`
const FILTERED = findings(5, ASKED, WANTED, WANTED_ROWS)

/** What precedes the record in a row: the reports and the retired guesses, in the first row alone, and its place. */
const PLACE = 2
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
  const values = [wireSourcesJson(names), digest, source, runs, fixable, fixable, limit + 1, limit + 1, digest, source]
  const isFiltered = [vulnId, packageName, kev, epssMin].some((one) => one !== null)
  const rows: RawRow[] = await gate((sql) =>
    (isFiltered ? FILTERED(sql, vulnId, packageName, kev, epssMin, vulnId, ...values) : FINDINGS(sql, ...values)).raw(),
  )
  const items = rows.slice(0, limit).filter((row) => row[PLACE] !== null)
  const last = rows.length > limit ? items.at(-1)! : null
  return {
    reports: readReports(rows[0]![0]!, names),
    retiredGuesses: readGuesses(rows[0]![1]!, names),
    items: plainRows(Finding, items, RECORD),
    nextAfter: last && writeCursor(placeOf(last)),
  }
}
