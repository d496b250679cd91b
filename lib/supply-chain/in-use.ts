/**
 * Whether packages of an image are in use (docs/contract.md#in-use), and how urgent their findings are
 * (docs/contract.md#tiers). The job keeps the tables `package_use` and `container_use`; a read joins the rows of one
 * image, so that nothing is shown as unused once a new file is stored.
 */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'

/** The strongest evidence first. A state is stored as its index in this list. */
export const USE_STATES = ['executed', 'loaded', 'unknown', 'installed_not_observed'] as const
export type UseState = (typeof USE_STATES)[number]
/** Why it is not known, in the order of preference where containers differ. */
const REASONS = [
  'no_runtime_data',
  'probes_missing',
  'libraries_not_tracked',
  'capture_gap',
  'language_package',
  'no_package_files',
  'sbom_incomplete',
] as const
/** The most urgent first; `null` stands for vulnerabilities that are not counted yet. A tier is stored as its index. */
export const TIER_POSITIONS = ['P0', null, 'P1', 'P2', 'Background'] as const
export const TIERS = ['P0', 'P1', 'P2', 'Background'] as const
export type Tier = (typeof TIERS)[number]

export const tierName = z.enum(TIERS)

/** The first fields about use in all answers. */
export const usage = {
  inUse: z
    .boolean()
    .nullable()
    .describe('Whether a workload that runs the image executed or loaded a file of the package; null is unknown.'),
  inUseState: z
    .enum(USE_STATES)
    .describe('The strongest of all containers. `installed_not_observed` only if all were watched for the window.'),
}

export const inUseDetail = z
  .strictObject({
    state: z.enum(USE_STATES),
    reason: z.enum(REASONS).nullable().describe('Why the state is unknown; null for any other.'),
    observedSince: wireTime.nullable().describe('Since when all watched containers are; null where it is unknown.'),
    windowHours: z.int().min(1).describe('For how long a container must have been watched to prove anything.'),
    containers: z.int().min(0).describe('How many containers of the inventory were judged.'),
    coverage: z
      .enum(['file', 'static_binary', 'interpreted'])
      .describe('How files tell: by themselves, as a part of a program, or not at all.'),
  })
  .meta({ id: 'InUseDetail' })

/** The fields about use of a finding. */
export const findingUsage = {
  ...usage,
  inUseDetail,
  tier: tierName.describe('The most urgent of all containers.'),
  tierFactors: z.array(z.string()).describe('The facts behind the tier.'),
}

const position = (list: readonly (string | null)[], expression: string) =>
  `array_position('{${list.join(',')}}', ${expression})`
/** SQL: the name of the state with a number. */
export const stateName = (number: string) => `use_state_name(${number})`
/** SQL: the name of the tier at a position; null for one that is not counted yet. */
export const nameOfTier = (place: string) => `('{${TIER_POSITIONS.map(String).join(',')}}'::text[])[${place} + 1]`
/** SQL: true, false or null, as a state with a number says. */
export const isInUse = (number: string) => `case when ${number} < 2 then true when ${number} = 3 then false end`

/** SQL: CTEs that `evidence` reads, about the image `digest` of the relation `asked`. */
export const USE = `
  use_groups as materialized (
    select g.* from asked a cross join lateral use_groups(a.digest) g),
  use_files as materialized (
    select f.package_name, f.is_cut
    from asked a
    cross join lateral (
      select s.whole_packages, s.cut_packages from summary_image s where s.image_digest = a.digest offset 0) s
    cross join lateral (
      select w.name as package_name, false as is_cut from unnest(s.whole_packages) w(name)
      union all
      select c.name, true from unnest(s.cut_packages) c(name)) f
    where exists (select from use_groups g where g.reason is null)),
  use_whole as materialized (
    select coalesce(sum(g.containers), 0)::bigint as containers, max(g.observed_since) as observed_since
    from use_groups g)`

/**
 * SQL: the evidence of the containers of an image about one of its packages, as `state`, `reason` and `exposure`; at
 * least one row. `name`, `isObservable` and `digest` are expressions. Containers that ran a file count twice, also as what they
 * would be without it, which is never stronger or more urgent.
 */
const evidence = (digest: string, name: string, isObservable: string) => `
  select case when p.is_executed then 0 else 1 end as state, null::text as reason, u.exposure
  from package_use p
  join workload_container w on w.pod_namespace = p.pod_namespace and w.workload_kind = p.workload_kind
    and w.workload_name = p.workload_name and w.container_name = p.container_name
    and w.image_digest = p.image_digest and w.cluster_id = p.cluster_id
  left join container_use u on u.image_digest = p.image_digest and u.pod_namespace = p.pod_namespace
    and u.workload_kind = p.workload_kind and u.workload_name = p.workload_name
    and u.container_name = p.container_name and u.cluster_id = p.cluster_id
  where p.image_digest = ${digest} and p.package_name = ${name}
  union all
  select case when r.reason is null then 3 else 2 end, r.reason, r.exposure
  from (
    select coalesce(g.reason, case when not ${isObservable} then 'language_package'
                                   when l.package_name is null then 'no_package_files'
                                   when l.is_cut then 'sbom_incomplete' end) as reason, g.exposure
    from (select g.reason, g.exposure from use_groups g
          union all
          select 'no_runtime_data', null where not exists (select from use_groups)) g
    left join use_files l on l.package_name = ${name}) r`

/** SQL: the strongest evidence about a package, as `state`, `reason` and the JSON `in_use_detail`. */
export function strongest(digest: string, name: string, coverage: string, isObservable: string, windowHours: string) {
  return `
  select e.state, json_build_object(
           'state', ${stateName('e.state')},
           'reason', case when e.state = 2 then e.reason end,
           'observedSince', case when e.state <> 2 then wire_time((select w.observed_since from use_whole w)) end,
           'windowHours', ${windowHours}::bigint,
           'containers', (select w.containers from use_whole w),
           'coverage', ${coverage}) as in_use_detail
  from (${evidence(digest, name, isObservable)}) e
  order by e.state, ${position(REASONS, 'e.reason')}
  limit 1`
}

/** The inputs of the tier of a finding beside its use, as expressions. */
interface Inputs {
  readonly severity: string
  readonly isFixable: string
  readonly kev: string
  readonly epss: string
}

const EXPOSURES = ['exposed', null, 'node_only', 'internal']

/** SQL: the most urgent evidence about a finding, as `tier` (a position) and `tier_factors`. */
export function mostUrgent(digest: string, name: string, isObservable: string, of: Inputs) {
  const isHot = `(${of.kev} or ${of.epss} >= r.epss)`
  const exposures = EXPOSURES.map((one, n) => `when e.exposure ${one === null ? 'is null' : `= '${one}'`} then ${n}`)
  return `
  select t.tier, array_remove(array[
           'in_use:' || ${stateName('e.state')},
           case when ${of.kev} then 'kev' end,
           case when ${of.epss} >= r.epss then 'epss>=' || r.epss end,
           'severity:' || lower(severity_name(${of.severity})),
           case when e.exposure is null then 'exposure:unknown' when e.exposure = 'node_only' then 'exposed:node_only'
                else e.exposure end,
           case when not ${of.isFixable} then 'no_fix' end], null) as tier_factors
  from (${evidence(digest, name, isObservable)}) e
  join tier_rule r on r.is_only
  cross join lateral (
    select tier_of(e.state < 3, ${of.severity}, ${of.isFixable}, ${isHot},
                   coalesce(e.exposure = 'exposed', r.unknown_is_exposed)) as tier) t
  order by t.tier, e.state, case ${exposures.join(' ')} end
  limit 1`
}

/** Returns the positions of the tiers with these names. */
export const tierPositions = (names: readonly Tier[]) => names.map((name) => TIER_POSITIONS.indexOf(name))
