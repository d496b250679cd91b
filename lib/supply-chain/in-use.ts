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

/** The exposures of containers, in the order of preference where two give the same tier. */
const EXPOSURES = [
  { exposure: "'exposed'", key: 'exposed', column: 'exposed' },
  { exposure: 'null', key: 'unknown', column: 'unknown' },
  { exposure: "'node_only'", key: 'nodeOnly', column: 'node_only' },
  { exposure: "'internal'", key: 'internal', column: 'internal' },
] as const
const each = (part: (one: (typeof EXPOSURES)[number], place: number) => string) => EXPOSURES.map(part).join(', ')

/** Why a package of which no container ran a file may still be in use, although all were watched. */
const UNPROVEN = ['language_package', 'no_package_files', 'sbom_incomplete']

/**
 * SQL: CTEs about the containers of the image `digest` of the relation `asked`. `use_rest` is what they say about a
 * package of which none ran a file: the strongest state, its reason, and the strongest state of each exposure, by the
 * reason `unproven` why files of the package tell nothing, which is null where they do.
 */
export const CONTAINERS = `
  use_groups as materialized (
    select g.* from asked a cross join lateral use_groups(a.digest) g),
  use_rest as materialized (
    select r.unproven, min(r.state) as state,
           (array_agg(r.reason order by ${position(REASONS, 'r.reason')}) filter (where r.state = 2))[1] as reason,
           ${each(
             ({ exposure, column }) =>
               `min(r.state) filter (where r.exposure is not distinct from ${exposure}) as ${column}`,
           )}
    from (
      select o.unproven, coalesce(g.reason, o.unproven) as reason, g.exposure,
             case when coalesce(g.reason, o.unproven) is null then 3 else 2 end as state
      from (values (null), ${UNPROVEN.map((reason) => `('${reason}')`).join(', ')}) o(unproven)
      cross join (
        select g.reason, g.exposure from use_groups g
        union all
        select 'no_runtime_data', null where not exists (select from use_groups)) g) r
    group by r.unproven),
  use_whole as materialized (
    select coalesce(sum(g.containers), 0)::bigint as containers, wire_time(max(g.observed_since)) as observed_since
    from use_groups g)`

/** SQL: a CTE with what is known about the packages with these names, which are an expression. */
export const packagesInUse = (names: string) => `
  use_packages as materialized (
    select packages_in_use(a.digest, ${names}) as known from asked a)`

/**
 * SQL: the evidence about a package of the image, from both CTEs, as one row: the strongest state with its `reason`,
 * and the strongest state of each exposure, null where no container has it. `name` and `isObservable` are expressions.
 * Containers that ran a file count twice, also as what they would be without it, which is never stronger.
 */
export const evidence = (name: string, isObservable: string) => `
  select least(r.state, ${each(({ column }) => `u.${column}`)}) as state, r.reason,
         ${each(({ column }) => `least(r.${column}, u.${column}) as ${column}`)}
  from (
    select (k.known ->> 'isCut')::boolean as is_cut, (k.known ->> 'isInterpreted')::boolean as is_interpreted,
           ${each(({ key, column }) => `(k.known ->> '${key}')::integer as ${column}`)}
    from (select p.known -> ${name} as known from use_packages p offset 0) k
    offset 0) u
  join use_rest r on r.unproven is not distinct from
    case when not ${isObservable} or u.is_interpreted then 'language_package'
         when u.is_cut is null then 'no_package_files'
         when u.is_cut then 'sbom_incomplete' end`

/** SQL: the JSON `inUseDetail` of the evidence `e`. */
export const detail = (e: string, coverage: string) => `
  json_build_object(
    'state', ${stateName(`${e}.state`)},
    'reason', case when ${e}.state = 2 then ${e}.reason end,
    'observedSince', case when ${e}.state <> 2 then (select w.observed_since from use_whole w) end,
    'windowHours', (select a.window_hours from asked a),
    'containers', (select w.containers from use_whole w),
    'coverage', ${coverage})`

/** The inputs of the tier of a finding beside its use, as expressions. */
interface Inputs {
  readonly severity: string
  readonly isFixable: string
  readonly kev: string
  readonly epss: string
}

/**
 * SQL: the most urgent of the evidence `e` about a finding, as `tier` (a position) and `tier_factors`. An EPSS is
 * stored as `real`, and compared as such: 0.7 is less than the 0.7 of double precision.
 */
export function mostUrgent(e: string, of: Inputs) {
  const isHot = `(${of.kev} or ${of.epss} >= r.epss::real)`
  return `
  select t.tier, array_remove(array[
           'in_use:' || ${stateName('x.state')},
           case when ${of.kev} then 'kev' end,
           case when ${of.epss} >= r.epss::real then 'epss>=' || r.epss end,
           'severity:' || lower(severity_name(${of.severity})),
           case when x.exposure is null then 'exposure:unknown' when x.exposure = 'node_only' then 'exposed:node_only'
                else x.exposure end,
           case when not ${of.isFixable} then 'no_fix' end], null) as tier_factors
  from (values ${each(({ exposure, column }, place) => `(${place}, ${exposure}, ${e}.${column})`)})
       x(place, exposure, state)
  cross join tier_rule r
  cross join lateral (
    select tier_of(x.state < 3, ${of.severity}, ${of.isFixable}, ${isHot},
                   coalesce(x.exposure = 'exposed', r.unknown_is_exposed)) as tier) t
  where r.is_only and x.state is not null
  order by t.tier, x.state, x.place
  limit 1`
}

/** Returns the positions of the tiers with these names. */
export const tierPositions = (names: readonly Tier[]) => names.map((name) => TIER_POSITIONS.indexOf(name))
