/**
 * Pages of GET /components: which images and workloads hold a package, by version (docs/contract.md#search).
 *
 * The packages of payloads are in an index of names, which gives the images that may hold one of the names, and the
 * positions of their components; a payload that the job has not read yet is looked at itself. The page walks these
 * images, those that run first, reads the entries with the names from the payloads that stand for each, and ends when
 * it is full.
 */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { writeCursor } from '../http/request/cursor.ts'
import { digestText } from '../images/digest.ts'
import { columnKinds } from '../records/column-kinds.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import { looked } from '../search/hits.ts'
import type { Purl } from '../search/purl.ts'
import { type WireNames, wireSourcesJson } from '../wire-names/index.ts'
import {
  CONTAINERS,
  detail,
  evidence,
  inUseDetail,
  isInUse,
  packagesInUse,
  stateName,
  USE_STATES,
  type UseState,
  usage,
} from './in-use.ts'
import { imageJoin } from './reports.ts'

/** Workloads that are listed of an image. */
const MAX_WORKLOADS = 10
/** Images that a page walks. */
const MAX_WALKED = 500

const Workload = z.strictObject({
  clusterId: z.string(),
  namespace: z.string(),
  kind: z.string(),
  name: z.string(),
  running: z.boolean(),
})

/** A package in an image. */
export const HeldComponent = z
  .strictObject({
    name: z.string(),
    version: z.string().nullable(),
    purl: z.string().nullable(),
    type: z.string().nullable(),
    evidence: z
      .enum(['sbom', 'findings'])
      .describe('`findings`: no SBOM of the image lists this name and version, but a report of vulnerabilities does.'),
    imageDigest: digestText,
    repository: z.string().nullable(),
    tags: z.array(z.string()),
    running: z.boolean().describe('Whether a container runs the image.'),
    join: imageJoin.describe('The closest join of the payloads behind it.'),
    sources: z.array(z.string()),
    workloads: z
      .array(Workload)
      .max(MAX_WORKLOADS)
      .register(columnKinds, { kind: 'json' })
      .describe('Workloads that run or ran the image, those that run it first.'),
    workloadCount: z.int().min(0),
    ...usage,
    inUseDetail,
  })
  .meta({ id: 'HeldComponent' })

/** A page of GET /components. */
export const HeldComponentPage = z
  .strictObject({
    items: z.array(HeldComponent),
    nextAfter: z.string().nullable().describe('The `after` of the next page; null on the last one.'),
    ...looked,
  })
  .meta({ id: 'HeldComponentPage' })

/** At least one of `name`, in lower case (A to Z), and `purl` is given. */
export interface ComponentFilter {
  readonly name: string | null
  readonly purl: Purl | null
  readonly version: string | null
  readonly running: boolean | null
  readonly states: readonly UseState[] | null
}

/** 0 where the image runs, else 1; then the image, and name, version, URL and type of the entry. */
export type ComponentCursor = readonly [
  rank: number,
  digest: string,
  name: string,
  version: string,
  purl: string,
  type: string,
]

/** In cursors a text begins with the first, and null is the second, which comes last. */
const TEXT = '0'
const NULL = '1'
/** Comes after a digest and before all others. */
const BEHIND = '~'

const orLast = (column: string) => `coalesce('${TEXT}' || ${column}, '${NULL}') collate "C"`
const PLACE = (alias: string) =>
  `${alias}.name, ${orLast(`${alias}.version`)}, ${orLast(`${alias}.purl`)}, ${orLast(`${alias}.type`)}`

const param = (name: string) => `(select q.${name} from params q)`
const NAMES = '(select n.names from named n)::text[]'
const IDS = '(select n.ids from named n)::bigint[]'

/** Condition: the entry `c` is what is asked for. Its name is one of the packages that are. */
const PASSES = `
  (${param('name')} is null or lower(c.name) = ${param('name')} or artifact_of(c.name) = ${param('name')})
  and (${param('version')} is null or c.version = ${param('version')})
  and case
    when ${param('purl_base')} is null then true
    when c.purl is null then
      (lower(c.name) = any (${param('purl_names')}::text[])
       or artifact_of(c.name) = any (${param('purl_names')}::text[]))
      and (${param('purl_version')} is null or c.version = ${param('purl_version')})
    when ${param('purl_version')} is null then purl_base(c.purl) = ${param('purl_base')}
    else purl_plain(c.purl) = ${param('purl_plain')}
         and (${param('purl_plain')} = ${param('purl_text')}
              or purl_text(c.purl) in (${param('purl_plain')}, ${param('purl_text')})) end`

/** SQL: the items of the image `w.image_digest`, in order. */
const ITEMS = `
  with asked as materialized (
    select w.image_digest as digest, ${param('window_hours')} as window_hours),
  ${CONTAINERS},
  entries as materialized (
    select c.name, c.version, c.purl, c.type, 'sbom' as evidence, e.source, e.join_rank,
           package_coverage(c.type, c.class, c.purl) as coverage
    from answering_reports(w.image_digest, 'sbom') e
    left join lateral packages_of_payload(e.digest, e.source, 'sbom') p on true
    cross join lateral (
      select c.name collate "C" as name, c.version collate "C" as version, c.purl collate "C" as purl,
             c.type collate "C" as type, c.class
      from unnest(${IDS}) i(id)
      cross join unnest(array_positions(p.packages, i.id)) n(position)
      join image_component c on c.digest = e.digest and c.source = e.source and c.position = n.position
      where p.packages is not null
      union all
      select c.name collate "C", c.version collate "C", c.purl collate "C", c.type collate "C", c.class
      from image_component c
      where p.packages is null
        and c.digest = e.digest and c.source = e.source and lower(c.name collate "C") = any (${NAMES})
      offset 0) c
    where ${PASSES}
    union all
    select c.name, c.version, c.purl, c.type, 'findings', e.source, e.join_rank,
           package_coverage(c.type, c.class, c.purl)
    from answering_reports(w.image_digest, 'vulnerabilities') e
    left join lateral packages_of_payload(e.digest, e.source, 'vulnerabilities') p on true
    cross join lateral (
      select f.package_name as name, nullif(f.installed_version, '') as version, f.package_purl collate "C" as purl,
             f.package_type collate "C" as type, f.class
      from image_finding f
      where (p.packages is null or p.packages && ${IDS})
        and f.digest = e.digest and f.source = e.source and lower(f.package_name) = any (${NAMES})
      offset 0) c
    where ${PASSES}),
  kept as materialized (
    select e.name, e.version, e.purl, e.type, e.evidence, min(e.join_rank) as join_rank,
           array_agg(distinct e.source order by e.source) as sources,
           -- One entry whose files tell nothing is enough: unknown is never shown as unused.
           bool_and(e.coverage <> 'interpreted') as is_observable,
           case when bool_and(e.coverage <> 'interpreted') then min(e.coverage) else 'interpreted' end as coverage
    from (select e.*, bool_or(e.evidence = 'sbom') over (partition by e.name, e.version) as is_in_sbom from entries e) e
    where e.evidence = 'sbom' or not e.is_in_sbom
    group by e.name, e.version, e.purl, e.type, e.evidence),
  ${packagesInUse('array(select distinct k.name from kept k)')}
  select k.*, ${isInUse('k.state')} as in_use, ${stateName('k.state')} as in_use_state,
         ${detail('k', 'k.coverage')} as in_use_detail
  from (
    select k.*, u.state, u.reason
    from kept k
    cross join lateral (${evidence('k.name', 'k.is_observable')}) u
    where (${param('states')} is null or u.state = any (${param('states')}::integer[]))
      and ((w.rank, w.image_digest) <> (${param('after_rank')}, ${param('after_digest')})
           or (${PLACE('k')}) > (${['name', 'version', 'purl', 'type'].map((key) => param(`after_${key}`)).join(', ')}))
    order by ${PLACE('k')}
    limit ${param('rows')}) k
  order by ${PLACE('k')}`

const RUNS = `image_runs(c.image_digest, ${param('window_secs')})`
const IN_ORDER = '(select c.image_digest from candidates c order by c.image_digest offset 0) c'

const COMPONENTS = fixed(`
  with params as materialized (
    select $1::text as name, $2::text as version, $3::text as purl_text, $4::text as purl_plain, $5::text as purl_base,
           $6::text as purl_version, array(select json_array_elements_text($7::text::json)) as purl_names,
           $8::boolean as running,
           (select array_agg(s.n::integer) from json_array_elements_text($9::text::json) s(n)) as states,
           $10::integer as window_secs, $11::bigint as window_hours,
           $12::integer as after_rank, $13::text collate "C" as after_digest, $14::text collate "C" as after_name,
           $15::text collate "C" as after_version, $16::text collate "C" as after_purl,
           $17::text collate "C" as after_type, $18::bigint as rows, $19::text::jsonb as shown),
  named as materialized (
    select n.names, array(select e.id from package_entry e where e.name = any (n.names)) as ids
    from params p cross join lateral package_names(p.name, p.purl_base, p.purl_names) n(names)),
  candidates as materialized (
    select i.image_digest from named n cross join lateral images_with(n.names) i),
  -- PostgreSQL fills a CTE as it is read, so the walk ends with the last row of the page.
  walked as materialized (
    select r.rank, r.image_digest
    from (
      (select 0 as rank, c.image_digest
       from ${IN_ORDER}
       where ${param('running')} is distinct from false and ${param('after_rank')} = 0
         and c.image_digest >= ${param('after_digest')} and ${RUNS})
      union all
      (select 1, c.image_digest
       from ${IN_ORDER}
       where ${param('running')} is distinct from true
         and (${param('after_rank')} = 0 or c.image_digest >= ${param('after_digest')}) and not ${RUNS})) r
    limit ${MAX_WALKED}),
  page as materialized (
    select w.rank, w.image_digest, i.*
    from walked w cross join lateral (${ITEMS}) i
    limit ${param('rows')}),
  walk_end as materialized (
    select w.rank, w.image_digest
    from walked w
    where case when (select count(*) from page) < ${param('rows')}
               then (select count(*) from walked) = ${MAX_WALKED} end
    order by w.rank desc, w.image_digest desc limit 1),
  images as materialized (
    select d.image_digest, m.repository, m.tags, l.workloads, l.workload_count
    from (select distinct p.image_digest from page p) d
    cross join lateral (select m.* from image m where m.digest = d.image_digest offset 0) m
    cross join lateral (
      select coalesce(json_agg(json_build_object(
               'clusterId', s.cluster_id, 'namespace', s.pod_namespace, 'kind', s.workload_kind,
               'name', s.workload_name, 'running', s.runs) order by s.nth) filter (where s.nth <= ${MAX_WORKLOADS}), '[]')
               as workloads,
             count(*) as workload_count
      from (select s.*, row_number() over (order by s.runs desc, s.pod_namespace, s.workload_kind, s.workload_name,
                                           s.cluster_id) as nth
            from (select w.cluster_id, w.pod_namespace, w.workload_kind, w.workload_name,
                         bool_or(is_running(w, ${param('window_secs')})) as runs
                  from workload_container w
                  where w.image_digest = d.image_digest
                  group by w.cluster_id, w.pod_namespace, w.workload_kind, w.workload_name) s) s) l)
  select (select not_covered(${param('window_secs')})::text), (select not_read()::text),
         (select e.rank::text from walk_end e), (select e.image_digest from walk_end e),
         i.rank::text, i.image_digest, i.name, i.version, i.purl, i.type, ${plainColumns(HeldComponent, 'i')}
  from (values (1)) one(row)
  left join (
    select p.rank, p.image_digest, p.name, p.version, p.purl, p.type, p.evidence, m.repository, m.tags,
           p.rank = 0 as running, join_name(p.join_rank) as "join", display_names(p.sources, ${param('shown')}) as sources,
           m.workloads, m.workload_count, p.in_use, p.in_use_state, p.in_use_detail
    from page p
    join images m on m.image_digest = p.image_digest) i on true
  order by i.rank, i.image_digest, ${PLACE('i')}`)

/** Columns before the cursor: what was not looked at, and the end of the walk. */
const CURSOR = 4
const RECORD = CURSOR + 6

const FIRST: ComponentCursor = [0, '', '', '', '', '']

function cursorOf(row: RawRow): ComponentCursor {
  const [rank, digest, name, ...keys] = row.slice(CURSOR, RECORD)
  const [version, purl, type] = keys.map((key) => (key === null ? NULL : `${TEXT}${key}`))
  return [Number(rank), String(digest), String(name), version!, purl!, type!]
}

/** Returns a page of the images that hold a package as JSON (docs/contract.md#search). */
export async function readHeldComponents(
  gate: Gate,
  { name, purl, version, running, states }: ComponentFilter,
  { limit, after }: { limit: number; after: ComponentCursor | null },
  config: { wireNames: WireNames; inUseWindowHours: number; imageRunningWindowSecs: number },
): Promise<Buffer> {
  const useNumbers = states && JSON.stringify(states.map((one) => USE_STATES.indexOf(one)))
  const asked = [name, version, purl?.text ?? null, purl?.plain ?? null, purl?.base ?? null, purl?.version ?? null]
  const rows: RawRow[] = await gate((sql) =>
    COMPONENTS(
      sql,
      ...[...asked, JSON.stringify(purl?.names ?? []), running, useNumbers],
      ...[config.imageRunningWindowSecs, config.inUseWindowHours, ...(after ?? FIRST)],
      ...[limit + 1, wireSourcesJson(config.wireNames)],
    ).raw(),
  )
  const items = rows.slice(0, limit).filter((row) => row[CURSOR] !== null)
  const [notCovered, notRead, rank, digest] = rows[0]!
  const next =
    rows.length > limit ? cursorOf(items.at(-1)!) : rank && [Number(rank), `${digest}${BEHIND}`, '', '', '', '']
  const nextAfter = JSON.stringify(next && writeCursor(next))
  return Buffer.concat([
    Buffer.from('{"items":['),
    plainRows(HeldComponent, items, RECORD),
    Buffer.from(`],"nextAfter":${nextAfter},"notCovered":${notCovered},"notRead":${notRead}}`),
  ])
}
