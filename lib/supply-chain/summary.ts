/**
 * Pages of GET /vulnerabilities, read from the table `cve_summary`.
 *
 * An index holds each combination of a scope (fixable or not, running or not) in list order. A page merges at most four
 * runs of that index for each tier and run of consecutive severities, so it reads little more than its own rows,
 * however long the list is.
 *
 * Aliases, packages, KEV and EPSS are in tables of their own, each with an index. If one of these filters leaves few
 * vulnerabilities, they are looked up in the summary one by one. Otherwise a bounded stretch of the list is walked for
 * each page; such a page may be short and still have a next one.
 */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { writeCursor } from '../http/request/cursor.ts'
import { wireTime } from '../http/request/fields.ts'
import { plainColumns, plainRow, plainRows, type RawRow } from '../records/index.ts'
import { type WireNames, wireSourcesJson } from '../wire-names/index.ts'
import { lookUpsOf, type VulnerabilityFilter } from './filters.ts'
import { isInUse, nameOfTier, stateName, TIER_POSITIONS, tierName, tierPositions, usage } from './in-use.ts'
import { imageJoin } from './reports.ts'
import { severityName, severityRuns } from './severity.ts'

const MAX_PACKAGES = 5
/** At most every other one of the six severities starts a run, in each tier. */
const MAX_RUNS = 3 * TIER_POSITIONS.length

const count = z.int().min(0)

/** A vulnerability of the cluster or of a namespace (docs/contract.md#findings). */
const Vulnerability = z
  .strictObject({
    id: z.string(),
    aliases: z.array(z.string()).describe('Its other ids, from any report.'),
    severity: severityName.describe('The highest that any image has.'),
    maxScore: z.number().nullable(),
    fixable: z.boolean(),
    kev: z.boolean().nullable().describe('Whether it is known to be exploited; null is unknown.'),
    maxEpss: z.number().nullable(),
    packages: z.array(z.string()).max(MAX_PACKAGES),
    packageCount: count.describe(`How many packages have it; the first ${MAX_PACKAGES} are listed.`),
    sources: z.array(z.string()),
    images: count,
    workloads: count,
    runningWorkloads: count,
    namespaces: count,
    weakestJoin: imageJoin.describe('`workload_tag` when a count rests on a tag alone.'),
    ...usage,
    tier: tierName.nullable().describe('The most urgent of all containers; null until the next pass counts it.'),
    executedWorkloads: count.describe('Workloads by their own strongest state; the four add up to `workloads`.'),
    loadedWorkloads: count,
    unknownWorkloads: count,
    notObservedWorkloads: count,
    exposedWorkloads: count.describe('Workloads that more than nodes and their own namespace were seen to reach.'),
    decidedWorkloads: count.describe('Workloads in which all findings of it are decided; they count in all others.'),
  })
  .meta({ id: 'Vulnerability' })

const State = z.strictObject({
  computedAt: wireTime.nullable().describe('When the summary was last computed; null before the first pass.'),
  staleSeconds: count.nullable(),
})

/** A page of GET /vulnerabilities. */
export const VulnerabilityPage = z
  .strictObject({
    order: z.enum(['tier']).describe('The most urgent tier first; those that are not counted yet come after `P0`.'),
    items: z.array(Vulnerability),
    nextAfter: z
      .string()
      .nullable()
      .describe('The `after` of the next page; null on the last one. A filtered page may be shorter than `limit`.'),
    ...State.shape,
  })
  .meta({ id: 'VulnerabilityPage' })

export interface SummaryFilter extends VulnerabilityFilter {
  /** True leaves only vulnerabilities with a running workload. */
  readonly running: boolean
  /** Null for the cluster. */
  readonly namespace: string | null
}

/** The cursor of a page: the position of the tier, severity number and vulnerability id of its last row. */
export type VulnerabilityCursor = readonly [tier: number, severity: number, id: string]

// The index stores the boolean as it is; PostgreSQL rewrites "= true" so that it no longer matches, but not "is true".
const outcome = (fixable: boolean, running: boolean) => `
      (select c.*
       from cve_summary c
       where run.fixable is distinct from ${!fixable} and (${running} or not run.running)
         and c.scope_namespace = run.namespace and c.is_fixable is ${fixable}
         and (c.running_workloads > 0) is ${running} and c.tier = run.tier
         and (c.severity, c.vuln_id) > (run.severity, run.vuln_id) and c.severity <= run.last
       order by c.severity, c.vuln_id)`

const ALL_OUTCOMES = [true, false]
  .flatMap((fixable) => [true, false].map((running) => outcome(fixable, running)))
  .join(' union all ')

const runs = (json: string) => `
        (select *
         from json_to_recordset(${json}::text::json)
           run(namespace text, fixable boolean, running boolean, tier smallint, severity smallint, last smallint,
               vuln_id text)
         limit ${MAX_RUNS}) run`

/**
 * The first rows of all runs. The runs are in list order and a lateral join takes them in turn, so the first rows that
 * it finds are the first of the list, and it needs to go no further.
 */
const walk = (json: string, limit: string, sameLimit = limit) => `
    select c.*
    from ${runs(json)}
    cross join lateral (
      select c.*
      from (${ALL_OUTCOMES}) c
      order by c.severity, c.vuln_id
      limit ${limit}) c
    limit ${sameLimit}`

/** The strongest state of the workloads that a row counts. */
const stateOf = (row: string) => `
      case when ${row}.executed_workloads > 0 then 0
           when ${row}.loaded_workloads > 0 then 1
           when ${row}.workloads > 0 and ${row}.not_observed_workloads = ${row}.workloads then 3
           else 2 end`

/**
 * Renders the rows of `page`, with the state of the summary. `sources` is an expression, JSON of the names of sources;
 * `walked` is where a walk ended that has more rows before it.
 */
const pageRows = (sources: string, walked: string) => `
  select v.place::text, v.rank::text, v.id, ${walked}, ${plainColumns(State, 's')}, ${plainColumns(Vulnerability, 'v')}
  from (select r.refreshed_at as computed_at,
               case when r.refreshed_at > now() at time zone 'utc' then 0
                    else floor(extract(epoch from now() at time zone 'utc' - r.refreshed_at)) end as stale_seconds
        from (values (1)) one(row)
        left join cve_summary_state r on r.is_only) s
  left join (
    select p.tier     as place,
           p.severity as rank,
           p.vuln_id  as id,
           a.aliases,
           severity_name(p.severity) as severity,
           d.max_score,
           p.is_fixable as fixable,
           f.kev,
           f.epss as max_epss,
           array(select n.name from unnest(d.packages) n(name)
                 order by n.name collate "C" limit ${MAX_PACKAGES}) as packages,
           coalesce(d.package_count, cardinality(d.packages), 0) as package_count,
           array(select coalesce(${sources} ->> n.name, n.name) from unnest(d.sources) n(name)
                 order by n.name collate "C") as sources,
           p.images, p.workloads, p.running_workloads, p.namespaces,
           join_name(p.join_rank) as weakest_join,
           ${isInUse('u.state')} as in_use,
           ${stateName('u.state')} as in_use_state,
           ${nameOfTier('p.tier')} as tier,
           p.executed_workloads, p.loaded_workloads,
           p.workloads - p.executed_workloads - p.loaded_workloads - p.not_observed_workloads as unknown_workloads,
           p.not_observed_workloads, p.exposed_workloads,
           least(coalesce(k.workloads, 0), p.workloads) as decided_workloads
    from page p
    cross join lateral (select ${stateOf('p')} as state) u
    cross join lateral alias_list(p.vuln_id) a
    left join cve_detail d on d.vuln_id = p.vuln_id
    left join cve_fact f on f.vuln_id = p.vuln_id
    left join cve_decided k on k.vuln_id = p.vuln_id and k.scope_namespace = p.scope_namespace) v on true
  order by v.place, v.rank, v.id`

const SUMMARY = fixed(`
  with page as materialized (${walk('$1', '$2', '$3')})
  ${pageRows('(select $4::text::jsonb)', 'null::text, null::text, null::text')}`)

/** A filter that leaves at most this many vulnerabilities is answered by looking them up one by one. */
export const MAX_CANDIDATES = 5_000
/** Rows of the summary that one page of a filtered list walks at most. */
export const MAX_WALKED = 10_000

const param = (name: string) => `(select a.${name} from params a)`
const PARAMS = `params as materialized (
    select $1::text as runs, $2::bigint as rows, $3::text as vuln, $4::text as package,
           $5::boolean as kev, $6::real as epss,
           (select array_agg(s.n::integer) from json_array_elements_text($7::text::json) s(n)) as states,
           $8::text::jsonb as sources, vuln_names($9) as names)`

/** The vulnerabilities that each filter leaves. */
const FILTERS = {
  vuln: `select d.vuln_id from unnest(${param('names')}) n(name) join cve_detail d on upper(d.vuln_id) = n.name`,
  package: `select p.vuln_id from cve_package p where p.package_name = ${param('package')}`,
  kev: `select f.vuln_id from cve_fact f where f.kev = ${param('kev')}`,
  epss: `select f.vuln_id from cve_fact f where f.epss >= ${param('epss')}`,
} as const
const eachFilter = (part: (name: string, statement: string) => string, separator: string) =>
  Object.entries(FILTERS)
    .map(([name, statement]) => part(name, statement))
    .join(separator)

/** Whether a row of the summary passes all filters. */
const isWanted = `
      (${param('vuln')} is null or upper(c.vuln_id) = any (${param('names')}::text[]))
      and (${param('package')} is null
           or (select true from cve_package p where p.vuln_id = c.vuln_id and p.package_name = ${param('package')}))
      and (num_nonnulls(${param('kev')}, ${param('epss')}) = 0
           or (select (${param('kev')} is null or f.kev = ${param('kev')})
                      and (${param('epss')} is null or f.epss >= ${param('epss')})
               from cve_fact f where f.vuln_id = c.vuln_id))
      and (${param('states')} is null or (${stateOf('c')}) = any (${param('states')}::integer[]))`

const FILTERED = fixed(`
  with ${PARAMS},
  ${eachFilter((name, statement) => `of_${name} as materialized (${statement} limit ${MAX_CANDIDATES + 1})`, ',\n  ')},
  fewest as materialized (
    select s.name
    from (values
      ${eachFilter((name) => `('${name}', ${param(name)} is not null, (select count(*) from of_${name}))`, ', ')}
    ) s(name, is_set, n)
    where s.is_set and s.n <= ${MAX_CANDIDATES}
    order by s.n
    limit 1),
  candidates as materialized (
    ${eachFilter(
      (name) => `select c.vuln_id from of_${name} c where (select f.name from fewest f) = '${name}'`,
      ' union all ',
    )}),
  found as materialized (
    select c.*
    from candidates w
    cross join lateral (
      select c.* from cve_summary c
      where c.vuln_id = w.vuln_id and c.scope_namespace = (select run.namespace from ${runs(param('runs'))} limit 1)
      offset 0) c
    where exists (
        select from ${runs(param('runs'))}
        where (run.fixable is null or c.is_fixable = run.fixable) and (not run.running or c.running_workloads > 0)
          and c.tier = run.tier and (c.severity, c.vuln_id) > (run.severity, run.vuln_id) and c.severity <= run.last)
      and ${isWanted}
    order by c.tier, c.severity, c.vuln_id
    limit ${param('rows')}),
  walked as materialized (
    select w.* from (${walk(param('runs'), String(MAX_WALKED))}) w where not exists (select from fewest)),
  page as materialized (
    select * from found
    union all
    -- In list order. PostgreSQL fills a CTE as it is read, so the walk ends with the last row of the page.
    (select c.* from walked c where ${isWanted} limit ${param('rows')})),
  walk_end as materialized (
    select w.tier, w.severity, w.vuln_id
    from walked w
    where case when (select count(*) from page) < ${param('rows')}
               then (select count(*) from walked) = ${MAX_WALKED} end
    order by w.tier desc, w.severity desc, w.vuln_id desc limit 1)
  ${pageRows(
    param('sources'),
    ['tier::text', 'severity::text', 'vuln_id'].map((column) => `(select e.${column} from walk_end e)`).join(', '),
  )}`)

/**
 * Columns before the record: its cursor, the end of the walk and the state of the summary. An empty page is one row
 * with only the last two.
 */
const WALK_END = 3
const STATE = WALK_END + 3
const RECORD = STATE + Object.keys(State.shape).length

/** The runs of severities to read in each tier, from the cursor on. */
function runsOf(
  { severities, namespace, fixable, running, tiers }: SummaryFilter,
  [place, from, id]: VulnerabilityCursor,
) {
  const places = tiers === null ? TIER_POSITIONS.map((_, tier) => tier) : tierPositions(tiers)
  return places
    .filter((tier) => tier >= place)
    .flatMap((tier) => {
      const isFirst = tier === place
      return severityRuns(severities, isFirst ? from : 0).map((run) => ({
        ...{ ...run, tier, fixable, running, namespace: namespace ?? '' },
        vuln_id: isFirst && run.severity === from ? id : '',
      }))
    })
}

/** Returns a page of the summary and its age as JSON (docs/contract.md#findings). */
export async function readSummary(
  gate: Gate,
  filter: SummaryFilter,
  { limit, after }: { limit: number; after: VulnerabilityCursor | null },
  names: WireNames,
): Promise<string> {
  const json = JSON.stringify(runsOf(filter, after ?? [0, 0, '']))
  // The runs are those of the wanted tiers.
  const lookUps = lookUpsOf({ ...filter, tiers: null })
  const rows: RawRow[] = await gate((sql) =>
    lookUps
      ? FILTERED(sql, json, limit + 1, ...lookUps.slice(0, -1), wireSourcesJson(names), filter.vulnId).raw()
      : SUMMARY(sql, json, limit + 1, limit + 1, wireSourcesJson(names)).raw(),
  )
  const items = rows.slice(0, limit).filter(([place]) => place !== null)
  const walkEnd = rows[0]!.slice(WALK_END, STATE)
  const last = rows.length > limit ? items.at(-1)! : walkEnd[0] === null ? null : walkEnd
  const nextAfter = last && writeCursor([Number(last[0]), Number(last[1]), String(last[2])])
  const state = plainRow(State, rows[0]!, STATE).toString().slice(1)
  const rest = `"nextAfter":${JSON.stringify(nextAfter)},${state}`
  return `{"order":"tier","items":[${plainRows(Vulnerability, items, RECORD)}],${rest}`
}
