/** Reads the vulnerabilities that came to workloads and went with their images (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { TIER_POSITIONS } from '../../supply-chain/in-use.ts'
import type { ContainerImages } from '../images.ts'
import { type Gap, gap, type Known, known, unknown } from '../not-known.ts'
import { type OfEach, ofEach, type WorkloadName } from './workloads.ts'

/** Vulnerabilities of a workload that are named. */
export const MAX_NAMED = 5
/** Vulnerabilities of a workload whose tier is read for its diff. */
const MAX_TIERS = 20_000

/** The images that a workload ran before the change and runs after it: digests by container. */
export interface WorkloadImages extends WorkloadName {
  readonly containers: readonly ContainerImages[]
}

export interface TierCounts {
  readonly P0: number
  readonly P1: number
  readonly P2: number
  readonly Background: number
}

/** A vulnerability of the images after the change. */
export interface TieredCve {
  readonly id: string
  readonly severity: number
  readonly tier: keyof TierCounts
  /** Whether a container of the workload executed or loaded a file of a package that has it. */
  readonly isUsed: boolean
}

export interface CveChanges {
  readonly came: TierCounts
  /** Of tier P0 or P1, in packages of which a container executed or loaded a file. */
  readonly urgentInUse: number
  readonly went: number
  /** The most urgent that came. */
  readonly first: readonly TieredCve[]
}

interface Row {
  readonly n: number
  readonly missing: readonly string[]
  readonly sources: readonly string[]
  readonly came: readonly { readonly tier: number; readonly isUsed: boolean; readonly count: number }[]
  readonly went: number
  readonly first: readonly (Omit<TieredCve, 'tier'> & { readonly tier: number })[]
}

// A report counts once the summary has its vulnerabilities. Sources are those of the payloads that it counted.
const PAIRS = `
  asked as materialized (select $1::text as namespace, $2::text::json as pairs),
  pairs as materialized (
    select p.n, p.kind, p.name, p.container, p.digest, p.is_after
    from asked a
    cross join json_to_recordset(a.pairs)
      p(n integer, kind text, name text, container text, digest text, is_after boolean)),
  images as materialized (
    select d.digest, s.sources, d.is_after and s.sources is not null and is_use_current(d.digest) as is_current
    from (select p.digest collate "C" as digest, bool_or(p.is_after) as is_after from pairs p group by 1) d
    left join lateral (
      select array_agg(distinct split_part(l.line, ' ', 2)) as sources
      from (select s.payloads from summary_image s where s.image_digest = d.digest offset 0) s
      cross join lateral string_to_table(s.payloads, e'\\n') l(line)
      where starts_with(l.line, 'vulnerabilities ')) s on true),
  of_workloads as materialized (
    select p.n, p.digest, i.sources from (select distinct p.n, p.digest from pairs p) p
    join images i on i.digest = p.digest),
  common as materialized (
    select o.n, json_agg(o.source order by o.source) as sources
    from (
      select o.n, s.source, count(*) as images
      from of_workloads o cross join lateral unnest(o.sources) s(source)
      group by o.n, s.source) o
    where o.images = (select count(*) from of_workloads t where t.n = o.n)
    group by o.n),
  lists as materialized (
    select array_agg(p.n) as numbers, array_agg(p.kind) as kinds, array_agg(p.name) as names,
           array_agg(p.container) as containers, array_agg(p.digest) as digests, array_agg(p.is_after) as are_after,
           array_agg(i.is_current) as are_current, array_agg(c.sources::text) as sources
    from pairs p
    join common c on c.n = p.n
    join images i on i.digest = p.digest)`
const cves = (isOnlyChanged: boolean) => `
  lists l
  cross join lateral cve_changes(a.namespace, l.numbers, l.kinds, l.names, l.containers, l.digests, l.are_after,
                                 l.are_current, l.sources, ${isOnlyChanged}) v`

const COUNTS = fixed<Row[]>(`
  with ${PAIRS},
  changed as materialized (
    select v.*
    from asked a
    cross join ${cves(true)}
    where l.numbers is not null),
  counts as materialized (
    select v.n, v.is_after, v.tier, v.is_used, count(*) as count from changed v group by 1, 2, 3, 4),
  first as materialized (
    select v.*
    from (select v.*, row_number() over (partition by v.n order by v.tier, v.is_used desc, v.severity,
                                                                   v.max_score desc nulls last, v.vuln_id) as nth
          from changed v
          where v.is_after) v
    where v.nth <= ${MAX_NAMED})
  select w.n, (select coalesce(json_agg(o.digest order by o.digest), '[]')
               from of_workloads o where o.n = w.n and o.sources is null) as missing,
         coalesce(c.sources, '[]') as sources,
         (select coalesce(json_agg(json_build_object('tier', g.tier, 'isUsed', g.is_used, 'count', g.count)), '[]')
          from counts g where g.n = w.n and g.is_after) as came,
         coalesce((select sum(g.count) from counts g where g.n = w.n and not g.is_after), 0)::float8 as went,
         (select coalesce(json_agg(json_build_object('id', v.vuln_id, 'severity', v.severity, 'tier', v.tier,
                                                     'isUsed', v.is_used) order by v.nth), '[]')
          from first v where v.n = w.n) as first
  from (select distinct p.n from pairs p) w
  left join common c on c.n = w.n`)

const TIERS = fixed<[{ tiers: [id: string, tier: number, isUsed: boolean][] }]>(`
  with ${PAIRS}
  select coalesce(json_agg(json_build_array(t.vuln_id, t.tier, t.is_used)), '[]') as tiers
  from (
    select v.vuln_id, v.tier, v.is_used
    from asked a
    cross join ${cves(false)}
    where l.numbers is not null and v.is_after
    limit ${MAX_TIERS}) t`)

/** Only images of one side: those of both have changed nothing. */
function pairsJson(workloads: readonly WorkloadImages[]): string {
  const pairs = workloads.flatMap(({ kind, name, containers }, n) => {
    const [all, now] = [new Set(containers.flatMap(({ from }) => from)), new Set(containers.flatMap(({ to }) => to))]
    return containers.flatMap(({ container, from, to }) => [
      ...from
        .filter((digest) => !now.has(digest))
        .map((digest) => ({ n, kind, name, container, digest, is_after: false })),
      ...to
        .filter((digest) => !all.has(digest))
        .map((digest) => ({ n, kind, name, container, digest, is_after: true })),
    ])
  })
  return JSON.stringify(pairs)
}

const NO_COUNTS: TierCounts = { P0: 0, P1: 0, P2: 0, Background: 0 }
const NO_CHANGES: CveChanges = { came: NO_COUNTS, urgentInUse: 0, went: 0, first: [] }
const URGENT: readonly string[] = ['P0', 'P1']
const tierAt = (position: number) => TIER_POSITIONS[position]!

function changesOf({ missing, sources, came, went, first }: Row): Known<CveChanges> {
  if (missing.length > 0) return unknown(...missing.map((digest): Gap => gap('findings', 'no_report', { digest })))
  if (sources.length === 0) return unknown(gap('findings', 'no_common_source'))
  const counts = { ...NO_COUNTS }
  for (const { tier, count } of came) counts[tierAt(tier)] += count
  const urgent = came.filter(({ tier, isUsed }) => isUsed && URGENT.includes(tierAt(tier)))
  return known({
    came: counts,
    urgentInUse: urgent.reduce((sum, { count }) => sum + count, 0),
    went,
    first: first.map((one) => ({ ...one, tier: tierAt(one.tier) })),
  })
}

/** Counts the vulnerabilities that came to each of these workloads of a namespace, and those that went. */
export async function readCveChanges(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadImages[],
): Promise<OfEach<Known<CveChanges>>> {
  const pairs = pairsJson(workloads)
  const rows = pairs === '[]' ? [] : await gate((sql) => COUNTS(sql, namespace, pairs))
  return ofEach(workloads, rows, changesOf, () => known(NO_CHANGES))
}

/** The tiers of the vulnerabilities of the images that a workload did not run before, by id. */
export async function readTiers(
  gate: Gate,
  namespace: string,
  workload: WorkloadImages,
): Promise<ReadonlyMap<string, Pick<TieredCve, 'tier' | 'isUsed'>>> {
  const pairs = pairsJson([workload])
  if (pairs === '[]') return new Map()
  const [row] = await gate((sql) => TIERS(sql, namespace, pairs))
  return new Map(row!.tiers.map(([id, tier, isUsed]) => [id, { tier: tierAt(tier), isUsed }]))
}
