/**
 * Pages of GET /images/{digest}/vulnerabilities: the findings of all payloads of an image, merged
 * (docs/contract.md#findings).
 *
 * A merged finding takes the place of its best row. The primary key of each payload's findings is in list order, so of
 * each payload only as many rows are read as a page has, from the cursor on; rows whose finding stood before the cursor
 * are skipped. The page is the first findings of these rows. None is missed, since a payload that was not read to its
 * end gave a whole page. Then the rows of all payloads are fetched for the findings of the page only.
 */

import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { decidedHere, decisionOf, findingDecision } from '../decisions/shown.ts'
import { writeCursor } from '../http/request/cursor.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import { type WireNames, wireSourcesJson } from '../wire-names/index.ts'
import { lookUpsOf, type VulnerabilityFilter } from './filters.ts'
import {
  CONTAINERS,
  detail,
  evidence,
  findingUsage,
  isInUse,
  mostUrgent,
  nameOfTier,
  packagesInUse,
  stateName,
} from './in-use.ts'
import { answering, answeringColumns, answeringFields, readAnswering } from './reports.ts'
import { SEVERITIES, severityName, severityRuns } from './severity.ts'
import { nameOfStatus, statusName } from './status.ts'

/** A finding, merged from all sources (docs/contract.md#findings). */
export const Finding = z
  .strictObject({
    id: z.string().describe('Its CVE, if one is known.'),
    aliases: z.array(z.string()).describe('Its other ids, from any report.'),
    package: z.strictObject({ name: z.string(), type: z.string().nullable(), purl: z.string().nullable() }),
    installedVersion: z.string(),
    fixedVersions: z
      .array(z.string())
      .describe('All versions that any source gives, by source. Their text does not show which is newer.'),
    fixable: z.boolean(),
    severity: severityName,
    score: z.number().nullable(),
    cvss: z.record(z.string(), z.unknown()).describe('By scoring provider.'),
    title: z.string().nullable().describe('Text of third parties.'),
    primaryUrl: z.string().nullable().describe('Text of third parties; not to be fetched.'),
    target: z.string().nullable(),
    class: z.string().nullable(),
    publishedAt: wireTime.nullable(),
    lastModifiedAt: wireTime.nullable(),
    filePaths: z.array(z.string()),
    omitted: z
      .int()
      .min(0)
      .describe('Number of fixed versions, file paths and aliases of its reports that are not stored.'),
    kev: z
      .boolean()
      .nullable()
      .describe('Whether the vulnerability is known to be exploited, by any report; null is unknown.'),
    kevDateAdded: wireTime.nullable(),
    epss: z.number().nullable(),
    epssPercentile: z.number().nullable(),
    sources: z.array(z.string()),
    reportDigests: z.array(digestText),
    ...findingUsage,
    status: statusName
      .nullable()
      .describe('What the scanners say about a fix; the least reassuring where they differ, null where none says it.'),
    ...findingDecision,
  })
  .meta({ id: 'Finding' })

/** A page of GET /images/{digest}/vulnerabilities. */
export const FindingPage = z
  .strictObject({
    ...answeringFields(
      'An empty list means that nothing is known of the image, not that it is clean. For an index there is one ' +
        'report for each platform that was scanned.',
    ),
    items: z.array(Finding),
    nextAfter: z.string().nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'FindingPage' })

/** The cursor of a page: severity number, vulnerability id, package name and installed version of its last finding. */
export type FindingCursor = readonly [severity: number, id: string, packageName: string, installedVersion: string]

export interface FindingFilter extends VulnerabilityFilter {
  /** Null for any, empty for none. */
  readonly source: string | null
}

const KEY = ['severity', 'vuln_id', 'package_name', 'installed_version']
const key = (alias: string) => KEY.map((name) => `${alias}.${name}`).join(', ')
/** The columns that make two rows the same finding, whatever their severity. */
const IDENTITY = KEY.slice(1)
const identity = (alias: string) => IDENTITY.map((name) => `${alias}.${name}`).join(', ')

const ALL = `'{${SEVERITIES.map((_, number) => number).join(',')}}'::smallint[]`

/** Condition: the row belongs to the payload. */
const isOf = (alias: string, payload: string) =>
  `${alias}.digest = ${payload}.digest and ${alias}.source = ${payload}.source`

/** Condition: the same finding. Listing all severities lets PostgreSQL use the primary key. */
const isSame = (alias: string, other: string) =>
  `${alias}.severity = any (${ALL}) and ${IDENTITY.map((name) => `${alias}.${name} = ${other}.${name}`).join(' and ')}`

// Sub-selects with a limit, because PostgreSQL turns not exists() into a join, which reads a whole payload if it
// estimates the payload to be short.
const inOtherPayload = (column: string, condition: string) => `(
          select true
          from effective o
          cross join lateral (
            select ${column} from image_finding g
            where ${isOf('g', 'o')} and ${isSame('g', 'f')} limit 1) g
          where o.nth <> e.nth and ${condition}
          limit 1)`

/**
 * Whether another payload has the finding of a row before the cursor. The first page needs no check. A payload has a
 * finding once, so the bound is applied to the row that was found: as an index condition, PostgreSQL 15 may walk all
 * lower severities for it.
 */
const STOOD_BEFORE = `((run.severity > 0 or run.vuln_id <> '') and ${inOtherPayload(
  'g.severity',
  `g.severity < run.severity + case when (${identity('f')}) <= (${identity('run')}) then 1 else 0 end`,
)} is not null)`

const HAS_FIX = `(cardinality(f.fixed_versions) > 0
            or ${inOtherPayload('g.fixed_versions', 'cardinality(g.fixed_versions) > 0')} is not null)`

/** At most every other severity starts a run. Without the limit PostgreSQL plans for a hundred. */
const MAX_RUNS = SEVERITIES.length / 2

/** Descriptive columns: the first known value, in the order of source and digest. */
const DESCRIPTIVE = ['title', 'primary_url', 'target', 'class', 'published_at', 'last_modified_at']
const first = (name: string) => `first_not_null(r.${name} order by r.nth) as ${name}`

/** SQL: the most urgent of the evidence `e` about the finding `f` with the facts `k`. */
const urgency = (f: string) =>
  mostUrgent('e', { severity: `${f}.rank`, isFixable: `${f}.fixable`, kev: 'k.kev', epss: 'k.epss' })

/**
 * The findings that pass the filters. KEV, EPSS, aliases and use do not follow the order of the list, so each row of
 * the payloads is looked at once before the walk; their number is bounded.
 */
const WANTED = `
  candidates as materialized (
    select ${identity('f')}, min(f.severity) as rank, bool_or(f.fixed_versions <> '{}') as fixable,
           bool_and(package_coverage(f.package_type, f.class, f.package_purl) <> 'interpreted') as is_observable
    from effective e
    cross join params a
    cross join lateral (select f.* from image_finding f where ${isOf('f', 'e')} offset 0) f
    where (a.vuln is null or upper(f.vuln_id) = any (a.names))
      and (a.package is null or f.package_name = a.package)
    group by ${identity('f')}),
  ${packagesInUse('array(select distinct c.package_name from candidates c)')},
  wanted as materialized (
    select ${identity('f')}
    from candidates f
    cross join params a
    cross join lateral current_facts(f.vuln_id) k
    cross join lateral (${evidence('f.package_name', 'f.is_observable')}) e
    where (a.kev is null or k.kev = a.kev) and (a.epss is null or k.epss >= a.epss)
      and (a.states is null or e.state = any (a.states))
      and (a.tiers is null or (select t.tier from (${urgency('f')}) t) = any (a.tiers))),`

/**
 * The rows of a payload in order. The offset keeps other conditions out of this scan, so that it stays in index order.
 */
const ROWS = `(
          select f.*
          from image_finding f
          where ${isOf('f', 'e')} and (${key('f')}) > (${key('run')}) and f.severity <= run.last
          order by ${key('f')}
          offset 0)`

/**
 * The rows of a payload that pass the filters, in order; the others need no further look-up. "is true" keeps the list
 * of findings in a hash; without it PostgreSQL would join, and read the list once for each row.
 */
const WANTED_ROWS = `(
          select w.*
          from ${ROWS} w
          where ((${identity('w')}) in (select ${identity('v')} from wanted v)) is true
          offset 0)`

/**
 * `head` takes `n` parameters; it and `wanted`, which reads the packages of all findings, are empty without filters.
 * `rows` is the source of the findings.
 */
const findings = (n: number, head: string, wanted: string, rows: string) =>
  fixed(`
  with ${head} asked as materialized (
    select $${n + 1}::text as digest, $${n + 2}::bigint as window_hours),
  ${CONTAINERS},
  effective as materialized (
    select e.*, coalesce($${n + 3}::text::json ->> e.source, e.source) as wire_source,
           row_number() over (order by e.source, e.digest) as nth
    from (${answering('vulnerabilities', `$${n + 4}`, `$${n + 5}`)}) e),
  ${wanted}
  page as materialized (
    select p.*, row_number() over (order by ${key('p')}) as n
    from (
      select min(f.severity) as severity, ${identity('f')}
      from (select *
            from json_to_recordset($${n + 6}::text::json)
              r(severity smallint, last smallint, vuln_id text, package_name text, installed_version text)
            limit ${MAX_RUNS}) run
      cross join effective e
      cross join lateral (
        select ${key('f')}
        from ${rows} f
        where not ${STOOD_BEFORE}
          and ($${n + 7}::boolean is null or $${n + 8} = ${HAS_FIX})
        order by ${key('f')}
        limit $${n + 9}) f
      group by ${identity('f')}
      order by 1, 2, 3, 4
      limit $${n + 10}) p),
  ${wanted === '' ? `${packagesInUse('array(select distinct p.package_name from page p)')},` : ''}
  merged as (
    select p.n, p.severity as rank, p.package_name,
           p.vuln_id                                                   as id,
           json_build_object('name', p.package_name, 'type', m.package_type, 'purl', m.package_purl) as package,
           a.aliases,
           p.installed_version,
           severity_name(p.severity)                                   as severity,
           m.*,
           k.kev, k.kev_date_added, k.epss, k.epss_percentile
    from page p
    cross join lateral (
      with rows as materialized (
        select e.nth, e.wire_source, g.*
        from effective e
        cross join lateral (
          -- The limit ends the search at the first severity that has it; most payloads have it at the same one.
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
             array_agg(distinct r.package_purl) filter (where r.package_purl is not null) as package_purls,
             coalesce(first_not_null(nullif(r.file_paths, '{}') order by r.nth), '{}') as file_paths,
             sum(r.omitted)::bigint                                    as omitted,
             array(select min(r.wire_source) from rows r group by r.source order by r.source) as sources,
             array(select distinct r.digest from rows r order by 1)    as report_digests,
             bool_and(package_coverage(r.package_type, r.class, r.package_purl) <> 'interpreted') as is_observable,
             ${nameOfStatus('min(r.status)')}                          as status
      from rows r) m
    cross join lateral current_facts(p.vuln_id) k
    cross join lateral alias_list(p.vuln_id) a),
  ${decidedHere('array(select distinct p.vuln_id from page p)')},
  used as (
    select m.*, ${isInUse('e.state')} as in_use, ${stateName('e.state')} as in_use_state,
           ${detail('e', 'package_coverage(m.package_type, m.class, m.package_purl)')} as in_use_detail,
           ${nameOfTier('t.tier')} as tier, t.tier_factors,
           d.decision, d.decided
    from merged m
    cross join lateral (${evidence('m.package_name', 'm.is_observable')}) e
    cross join lateral (select m.kev, m.epss) k
    cross join lateral (${urgency('m')}) t
    cross join lateral (${decisionOf('m')}) d)
  select ${answeringColumns(
    'vulnerabilities',
    { from: 'effective', order: 'e.nth' },
    { rows: 'm', digest: `$${n + 11}`, source: `$${n + 12}` },
  )},
         m.rank::text, m.id, m.package_name, m.installed_version, ${plainColumns(Finding, 'm')}
  from (values (1)) one(row)
  left join used m on true
  order by m.n`)

const FINDINGS = findings(0, '', '', ROWS)
const PARAMS = `params as materialized (
    select $1::text as vuln, $2::text as package, $3::boolean as kev, $4::real as epss,
           (select array_agg(s.n::integer) from json_array_elements_text($5::text::json) s(n)) as states,
           (select array_agg(t.n::smallint) from json_array_elements_text($6::text::json) t(n)) as tiers,
           vuln_names($7) as names),`
const FILTERED = findings(7, PARAMS, WANTED, WANTED_ROWS)

/** Columns before the record: the reports and the retired guesses, in the first row only, and the cursor. */
const CURSOR = 2
const RECORD = CURSOR + KEY.length

/** The runs of severities to read. */
function runsOf(severities: readonly number[], [from, id, packageName, installedVersion]: FindingCursor) {
  const cursor = { vuln_id: id, package_name: packageName, installed_version: installedVersion }
  const start = { vuln_id: '', package_name: '', installed_version: '' }
  return severityRuns(severities, from).map((run) => ({ ...run, ...(run.severity === from ? cursor : start) }))
}

function cursorOf(row: RawRow): FindingCursor {
  const [severity, id, packageName, installedVersion] = row.slice(CURSOR, RECORD).map(String)
  return [Number(severity), id!, packageName!, installedVersion!]
}

/**
 * Returns the reports that answer for a digest, and a page of their merged findings as JSON
 * (docs/contract.md#findings).
 */
export async function readFindings(
  gate: Gate,
  digest: string,
  filter: FindingFilter,
  { limit, after }: { limit: number; after: FindingCursor | null },
  { wireNames: names, inUseWindowHours }: { wireNames: WireNames; inUseWindowHours: number },
) {
  const runs = JSON.stringify(runsOf(filter.severities, after ?? [0, '', '', '']))
  const { source, fixable } = filter
  const page = [runs, fixable, fixable, limit + 1, limit + 1]
  const values = [digest, inUseWindowHours, wireSourcesJson(names), digest, source, ...page, digest, source]
  const lookUps = lookUpsOf(filter)
  const rows: RawRow[] = await gate((sql) =>
    (lookUps ? FILTERED(sql, ...lookUps, filter.vulnId, ...values) : FINDINGS(sql, ...values)).raw(),
  )
  const items = rows.slice(0, limit).filter((row) => row[CURSOR] !== null)
  const last = rows.length > limit ? items.at(-1)! : null
  return {
    ...readAnswering(rows[0]!, names),
    items: plainRows(Finding, items, RECORD),
    nextAfter: last && writeCursor(cursorOf(last)),
  }
}
