/**
 * The vulnerabilities of the images that run, off the summary, a page at a time.
 *
 * An index has each outcome (fixable or not, running or not) of a scope in the order of the list, so a page is a merge of at most four
 * runs of it, for each run of severities that follow one another: however long the list is and whatever is asked for, little more is
 * read than the rows of the page.
 */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/fields.ts'
import { plainColumns, plainRow, plainRows, type RawRow } from '../records/index.ts'
import { writeCursor } from './cursor.ts'
import { shownSources, type WireNames } from './names.ts'
import { severityName, severityRuns } from './severity.ts'

const MAX_PACKAGES = 5
/** Of six severities every other one. */
const MAX_RUNS = 3

const count = z.int().min(0)

/** A vulnerability of the cluster or of a namespace (interop-supply-chain 3.5, S30). */
const Vulnerability = z
  .strictObject({
    id: z.string(),
    severity: severityName.describe('The highest that any image has.'),
    maxScore: z.number().nullable(),
    fixable: z.boolean(),
    kev: z.boolean().nullable().describe('Whether it is known to be exploited; null is unknown.'),
    maxEpss: z.number().nullable(),
    packages: z.array(z.string()).max(MAX_PACKAGES),
    sources: z.array(z.string()),
    images: count,
    workloads: count,
    runningWorkloads: count,
    namespaces: count,
    weakestJoin: z.enum(['image_id', 'platform_manifest', 'workload_tag']).describe('`workload_tag` when a count rests on a tag alone.'),
    inUse: z.null(),
    inUseState: z.enum(['unknown']),
  })
  .meta({ id: 'Vulnerability' })

const State = z.strictObject({
  computedAt: wireTime.nullable().describe('When the summary was last brought up to date; null before it first was.'),
  staleSeconds: count.nullable(),
})

/** A page of GET /vulnerabilities. */
export const VulnerabilityPage = z
  .strictObject({
    items: z.array(Vulnerability),
    nextAfter: z.string().nullable().describe('The `after` of the next page; null on the last one.'),
    ...State.shape,
  })
  .meta({ id: 'VulnerabilityPage' })

export interface VulnerabilityFilter {
  readonly severities: readonly number[]
  /** Null for both. */
  readonly fixable: boolean | null
  /** With true only those with a running workload. */
  readonly running: boolean
  /** Null for the cluster. */
  readonly namespace: string | null
}

/** Where a page ended: the number of a severity, the id of a vulnerability. */
export type VulnerabilityPlace = readonly [severity: number, id: string]

// "is true" rather than "= true": that is made a comparison that the index does not have.
const outcome = (fixable: boolean, running: boolean) => `
      (select c.*
       from cve_summary c
       where run.fixable is distinct from ${!fixable} and (${running} or not run.running)
         and c.scope_namespace = run.namespace and c.is_fixable is ${fixable} and (c.running_workloads > 0) is ${running}
         and (c.severity, c.vuln_id) > (run.severity, run.vuln_id) and c.severity <= run.last
       order by c.severity, c.vuln_id)`

const SUMMARY = fixed(`
  with page as materialized (
    select c.*
    from (select *
          from json_to_recordset($1::text::json)
            run(namespace text, fixable boolean, running boolean, severity smallint, last smallint, vuln_id text)
          limit ${MAX_RUNS}) run
    cross join lateral (
      select c.*
      from (${[true, false].flatMap((fixable) => [true, false].map((running) => outcome(fixable, running))).join(' union all ')}) c
      order by c.severity, c.vuln_id
      limit $2) c
    order by c.severity, c.vuln_id
    limit $3)
  select v.rank::text, v.id, ${plainColumns(State, 's')}, ${plainColumns(Vulnerability, 'v')}
  from (select r.refreshed_at as computed_at,
               case when r.refreshed_at > now() at time zone 'utc' then 0
                    else floor(extract(epoch from now() at time zone 'utc' - r.refreshed_at)) end as stale_seconds
        from (values (1)) one(row)
        left join cve_summary_state r on r.is_only) s
  left join (
    select p.severity as rank,
           p.vuln_id  as id,
           severity_name(p.severity) as severity,
           d.max_score,
           p.is_fixable as fixable,
           f.kev,
           f.epss as max_epss,
           array(select n.name from unnest(d.packages) n(name) order by n.name collate "C" limit ${MAX_PACKAGES}) as packages,
           array(select coalesce($4::text::json ->> n.name, n.name) from unnest(d.sources) n(name) order by n.name collate "C") as sources,
           p.images, p.workloads, p.running_workloads, p.namespaces,
           join_name(p.join_rank) as weakest_join,
           null::text as in_use,
           'unknown' as in_use_state
    from page p
    left join cve_detail d on d.vuln_id = p.vuln_id
    left join cve_fact f on f.vuln_id = p.vuln_id) v on true
  order by v.rank, v.id`)

/** What precedes the record in a row: its place, and the state of the summary, which alone is in the one row of an empty page. */
const STATE = 2
const RECORD = STATE + Object.keys(State.shape).length

/** Where to read. */
function runsOf({ severities, namespace, ...filter }: VulnerabilityFilter, [from, id]: VulnerabilityPlace) {
  return severityRuns(severities, from).map((run) => ({
    ...run,
    ...filter,
    vuln_id: run.severity === from ? id : '',
    namespace: namespace ?? '',
  }))
}

/** A page of the summary and how old it is, as JSON (interop-supply-chain 3.5). */
export async function readSummary(
  gate: Gate,
  filter: VulnerabilityFilter,
  { limit, after }: { limit: number; after: VulnerabilityPlace | null },
  names: WireNames,
): Promise<string> {
  const runs = JSON.stringify(runsOf(filter, after ?? [0, '']))
  const rows: RawRow[] = await gate((sql) => SUMMARY(sql, runs, limit + 1, limit + 1, shownSources(names)).raw())
  const items = rows.slice(0, limit).filter(([rank]) => rank !== null)
  const last = rows.length > limit ? items.at(-1)! : null
  const nextAfter = last && writeCursor([Number(last[0]), String(last[1])])
  const state = plainRow(State, rows[0]!, STATE).toString().slice(1)
  return `{"items":[${plainRows(Vulnerability, items, RECORD)}],"nextAfter":${JSON.stringify(nextAfter)},${state}`
}
