/**
 * Reads what is not known, part by part (docs/contract.md#coverage-report). A page with totals judges all rows of its
 * part; the others judge no more rows than they need.
 */
import { fixed, type Gate } from '../db/index.ts'
import { LEVELS } from '../seccomp/capture.ts'
import { MISSING, type Part } from './record.ts'

/** Rows of a part that one statement judges; with more of them nothing is counted, and a page ends there. */
export const MAX_JUDGED = 20_000

/** The parameters of every part. */
export interface CoverageQuestion {
  /** Null for the cluster. */
  readonly namespace: string | null
  readonly olderThanDays: number
  readonly windowHours: number
  /** Whether rows of which nothing is missing are listed too. */
  readonly includeKnown: boolean
  /** Whether the first page counts. */
  readonly withTotals: boolean
  readonly limit: number
  /** Seconds for which a reported container counts as running. */
  readonly runningWindowSecs: number
  /** Seconds after which a node that posted no pod is silent. */
  readonly staleAfterSecs: number
  /** Days that results of signature checks, and denials, are kept; 0 for ever. */
  readonly attestationRetentionDays: number
  readonly denialRetentionDays: number
}

/** The sort key of the last row of a page. */
export type Place = readonly string[]

export interface CoveragePage {
  /** Null where they are not counted. */
  readonly totals: object | null
  readonly items: readonly object[]
  readonly next: Place | null
}

/** The columns of the sort key of each part. */
const KEYS = {
  images: ['digest'],
  containers: ['pod_namespace', 'workload_kind', 'workload_name', 'container_name', 'image_digest'],
  nodes: ['node_name'],
  workloads: ['pod_namespace', 'workload_kind', 'workload_name'],
} as const satisfies Record<Part, readonly string[]>
const MOST_KEYS = KEYS.containers.length

/** How many texts the place of a part has. */
export const placeLength = (part: Part): number => KEYS[part].length

const ASKED = `
  asked as materialized (
    select a.*, now() at time zone 'utc' - make_interval(days => a.older_than_days) as old_before,
           retention_start(a.attestation_days) as checked_since
    from (select $1::text collate "C" as namespace, $2::integer as older_than_days, $3::integer as window_hours,
                 $4::boolean as include_known, $5::integer as max, $6::integer as running_secs,
                 $7::integer as stale_secs, $8::integer as attestation_days, $9::integer as denial_days,
                 $10::integer as max_judged,
                 ${Array.from({ length: MOST_KEYS }, (_, n) => `$${11 + n}::text collate "C" as key_${n}`).join(', ')}) a)`
const asked = (column: string) => `(select a.${column} from asked a)`

const columns = (alias: string, names: readonly string[]) => names.map((name) => `${alias}.${name}`).join(', ')
const placeOf = (count: number) => Array.from({ length: count }, (_, n) => asked(`key_${n}`)).join(', ')

/** A part as SQL: CTEs up to `scanned`, whose rows are numbered by `n` in order, and the judgement of such a row `l`. */
interface PartSql {
  readonly scanned: (isScoped: boolean) => string
  /** Selects the key, `missing` and what the items need, in the order of the key. */
  readonly judged: string
  /** Where the next page begins after `scanned` was cut: before this row of it, or after it. */
  readonly cutKey: string
  readonly cutRow: string
  /** Joins of the items, whose row is `p`, and their JSON. */
  readonly joins: string
  readonly item: string
}

const IMAGES: PartSql = {
  scanned: (isScoped) => `
  scanned as materialized (
    select s.*, row_number() over (order by s.digest) as n
    from (
      select w.image_digest as digest, count(*) as containers
      from workload_container w
      where ${isScoped ? `w.pod_namespace = ${asked('namespace')} and ` : ''}w.image_digest > ${asked('key_0')}
        and w.cluster_id = 'primary' and is_running(w, ${asked('running_secs')})
      group by w.image_digest
      order by w.image_digest
      limit ${asked('max_judged')} + 1) s)`,
  judged: `
    select l.digest, l.containers, c.*
    from (select s.* from scanned s where s.n <= ${asked('max_judged')} order by s.n) l
    cross join lateral image_coverage(l.digest, ${asked('old_before')}, ${asked('checked_since')}) c`,
  cutKey: 's.digest',
  cutRow: asked('max_judged'),
  joins: 'left join image m on m.digest = p.digest',
  item: `
    'digest', p.digest, 'repository', m.repository, 'containers', p.containers, 'missing', p.missing,
    'report', case when p.report_at is not null
              then json_build_object('scannedAt', wire_time(p.report_at), 'join', join_name(p.report_rank)) end,
    'sbom', case when p.sbom_at is not null
            then json_build_object('scannedAt', wire_time(p.sbom_at), 'join', join_name(p.sbom_rank)) end,
    'signature', case when p.verdict is not null
                 then json_build_object('verdict', p.verdict, 'checkedAt', wire_time(p.checked_at)) end`,
}

/**
 * The workloads from the cursor on that may run: those of the inventory, of live pods, and of containers that are
 * watched without a known image. Each list is in the order of an index, so that none is read beyond the limit.
 */
const WORKLOADS_SCANNED = (isScoped: boolean) => {
  const from = (alias: string, kind = `${alias}.workload_kind`, name = `${alias}.workload_name`) => `
        ${isScoped ? `${alias}.pod_namespace = ${asked('namespace')} and ` : ''}${alias}.pod_namespace >= ${asked('key_0')}
          and (${alias}.pod_namespace, ${kind}, ${name}) >= (${placeOf(3)})`
  const end = `order by 1, 2, 3 limit ${asked('max_judged')} + 1`
  return `
  scanned as materialized (
    select s.*, row_number() over (order by ${columns('s', KEYS.workloads)}) as n
    from (
      select u.pod_namespace collate "C" as pod_namespace, u.workload_kind collate "C" as workload_kind,
             u.workload_name collate "C" as workload_name
      from (
        (select distinct ${columns('w', KEYS.workloads)}
         from workload_container w
         where ${from('w')} and w.cluster_id = 'primary'
         ${end})
        union
        (select distinct ${columns('p', KEYS.workloads)}
         from pod p
         where ${from('p')} and not p.is_dead and p.workload_kind is not null and p.workload_name is not null
           and trimmed(p.workload_kind) <> '' and trimmed(p.workload_name) <> '' and trimmed(p.pod_namespace) <> ''
         ${end})
        union
        (select p.pod_namespace, 'Pod', p.pod_name
         from pod p
         where ${from('p', `'Pod'`, 'p.pod_name')} and not p.is_dead and trimmed(p.pod_namespace) <> ''
           and not is_owned(p.workload_kind, p.workload_name)
         ${end})
        union
        (select distinct ${columns('c', KEYS.workloads)}
         from runtime_coverage c
         where ${from('c')} and c.image_digest = '' and c.cluster_id = 'primary' and not c.ended
           and is_heartbeat_current(c.last_heartbeat, c.heartbeat_secs)
         ${end})) u
      ${end}) s)`
}
const OF_WORKLOAD = 'l.pod_namespace, l.workload_kind, l.workload_name'
const FROM_SCANNED = `(select s.* from scanned s where s.n <= ${asked('max_judged')} order by s.n) l`

const CONTAINERS: PartSql = {
  scanned: WORKLOADS_SCANNED,
  judged: `
    select ${OF_WORKLOAD}, c.*
    from ${FROM_SCANNED}
    cross join lateral (
      select k.container_name collate "C" as container_name, k.image_digest collate "C" as image_digest,
             r.observed_since, f.reason,
             array_remove(array[f.reason, case when k.image_digest = '' then 'image_not_resolved' end], null) as missing
      from running_containers_of(${OF_WORKLOAD}, ${asked('running_secs')}) k
      left join runtime_coverage_of('primary', ${OF_WORKLOAD}, null, null, ${asked('window_hours')}) r
        on r.container_name = k.container_name and r.image_digest = k.image_digest
      cross join lateral (
        select case when r.container_name is null then 'no_runtime_data' else r.reason end as reason) f
      order by 1, 2) c
    where (${OF_WORKLOAD}, c.container_name, c.image_digest) > (${placeOf(5)})`,
  // A container has a name, so all of the next workload follow.
  cutKey: `${columns('s', KEYS.workloads)}, '', ''`,
  cutRow: `${asked('max_judged')} + 1`,
  joins: '',
  item: `
    'namespace', p.pod_namespace, 'kind', p.workload_kind, 'name', p.workload_name, 'container', p.container_name,
    'imageDigest', p.image_digest, 'missing', p.missing, 'covered', p.reason is null, 'reason', p.reason,
    'reasonDetail', coverage_detail('primary', p.pod_namespace, p.workload_kind, p.workload_name, p.container_name,
                                    p.image_digest, ${asked('window_hours')}, p.reason),
    'observedSince', wire_time(p.observed_since)`,
}

const NODES: PartSql = {
  scanned: () => `
  scanned as materialized (
    select s.*, 0 as n from node_coverage(${asked('namespace')}, ${asked('stale_secs')}) s)`,
  judged: `
    select s.* from scanned s where s.node_name collate "C" > ${asked('key_0')} order by s.node_name collate "C"`,
  cutKey: 's.node_name',
  cutRow: 'null',
  joins: '',
  item: `
    'node', p.node_name, 'missing', p.missing, 'alivePods', p.alive_pods, 'watchedContainers', p.watched_containers,
    'lastPodPostAt', wire_time(p.last_pod_post), 'factsAt', wire_time(p.facts_at),
    'drainedAt', wire_time(p.drained_at), 'reasonDetail', p.detail`,
}

const WORKLOADS: PartSql = {
  scanned: (isScoped) => `
  watch as materialized (select w.is_watched from seccomp_watch(${asked('denial_days')}) w),
  ${WORKLOADS_SCANNED(isScoped)}`,
  judged: `
    select ${OF_WORKLOAD}, c.worst, coalesce(c.incomplete, 0) as incomplete, g.reason,
           array_remove(array[
             case when w.pod_namespace is null then 'no_observations' end,
             case when w.pod_namespace is not null and (c.pods = 0 or c.incomplete > 0) then 'capture_incomplete' end,
             case when g.reason is not null then 'denials_unknown' end], null) as missing,
           w.pod_namespace is not null as is_observed
    from ${FROM_SCANNED}
    left join workload_syscalls w
      on w.pod_namespace = l.pod_namespace and w.workload_kind = l.workload_kind and w.workload_name = l.workload_name
         and (w.syscall_count > 0 or w.reset_at is null)
    left join lateral workload_capture(w.pod_namespace, w.workload_kind, w.workload_name) c on true
    left join lateral denials_gap(l.pod_namespace, (select h.is_watched from watch h), ${asked('denial_days')}) g on true
    where (${OF_WORKLOAD}) > (${placeOf(3)})
      and (exists (select from running_containers_of(${OF_WORKLOAD}, ${asked('running_secs')}))
           or exists (select from live_pods_of(${OF_WORKLOAD})))`,
  cutKey: columns('s', KEYS.workloads),
  cutRow: asked('max_judged'),
  joins: `left join lateral denials_gap(p.pod_namespace, (select h.is_watched from watch h), ${asked('denial_days')}) g
    on p.reason is not null`,
  item: `
    'namespace', p.pod_namespace, 'kind', p.workload_kind, 'name', p.workload_name, 'missing', p.missing,
    'captureLevel', case when p.is_observed then coalesce(('{${LEVELS}}'::text[])[p.worst + 1], 'unknown') end,
    'incompletePods', p.incomplete,
    'denialsReason', p.reason, 'denialsReasonDetail', g.detail`,
}

const SQL: Record<Part, PartSql> = { images: IMAGES, containers: CONTAINERS, nodes: NODES, workloads: WORKLOADS }

const total = (part: Part) => `
  json_build_object(
    'total', count(*), 'known', count(*) filter (where j.missing = '{}'),
    'missing', json_build_object(
      ${MISSING[part].map((code) => `'${code}', count(*) filter (where '${code}' = any (j.missing))`).join(', ')}))`

/** Null where more rows than are judged were found. */
const countedTotals = (part: Part) => `(
         select case when (select max(s.n) from scanned s) > ${asked('max_judged')} then null else ${total(part)} end
         from judged j)`

/**
 * The page of a part. Where it counts, `judged` is read twice and so computed whole; else its rows are computed one
 * after the other until the page is full, in the order in which they come.
 */
function statement(part: Part, isScoped: boolean, isCounted: boolean) {
  const sql = SQL[part]
  const keys = KEYS[part].map((key) => `j.${key} collate "C"`).join(', ')
  const placed = KEYS[part].map((key) => `p.${key} collate "C"`).join(', ')
  return fixed<[CoveragePage]>(`
  with ${ASKED}, ${sql.scanned(isScoped)},
  judged as ${isCounted ? 'materialized' : 'not materialized'} (${sql.judged}),
  page as materialized (
    select p.*, row_number() over (order by ${placed}) as place
    from (
      select j.* from judged j
      where ${asked('include_known')} or j.missing <> '{}'
      ${isCounted ? `order by ${keys}` : ''}
      limit ${asked('max')} + 1) p)
  select ${isCounted ? countedTotals(part) : 'null::json'} as totals,
         (select coalesce(json_agg(json_build_object(${sql.item}) order by p.place), '[]')
          from page p ${sql.joins}
          where p.place <= ${asked('max')}) as items,
         coalesce(
           (select json_build_array(${columns('p', KEYS[part])}) from page p
            where p.place = ${asked('max')} and (select count(*) from page) > ${asked('max')}),
           (select json_build_array(${sql.cutKey}) from scanned s
            where s.n = ${sql.cutRow} and (select max(s.n) from scanned s) > ${asked('max_judged')}
              and (select count(*) from page) <= ${asked('max')})) as next`)
}

const STATEMENTS = new Map<string, ReturnType<typeof statement>>()
/** Each text is made once. */
function statementOf(part: Part, isScoped: boolean, isCounted: boolean): ReturnType<typeof statement> {
  const key = `${part} ${isScoped} ${isCounted}`
  const made = STATEMENTS.get(key) ?? statement(part, isScoped, isCounted)
  STATEMENTS.set(key, made)
  return made
}

/** Reads a page of a part: the first where `after` is null. */
export async function readPart(
  gate: Gate,
  part: Part,
  question: CoverageQuestion,
  after: Place | null,
  maxJudged = MAX_JUDGED,
): Promise<CoveragePage> {
  const place = Array.from({ length: MOST_KEYS }, (_, n) => after?.[n] ?? '')
  const [page] = await gate((sql) =>
    statementOf(part, question.namespace !== null, after === null && question.withTotals)(
      sql,
      question.namespace,
      question.olderThanDays,
      question.windowHours,
      question.includeKnown,
      question.limit,
      question.runningWindowSecs,
      question.staleAfterSecs,
      question.attestationRetentionDays,
      question.denialRetentionDays,
      maxJudged,
      ...place,
    ),
  )
  return page!
}
