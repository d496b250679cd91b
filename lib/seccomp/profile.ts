/** One workload with its observed set as a seccomp profile (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import type { Config } from '../config/index.ts'
import { createBatcher, type Database, fixed, type Gate } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { ReasonDetail } from '../runtime/reason-detail.ts'
import { type DetailRow, detailOf, ProfileDetail } from './detail.ts'
import { type EntryRow, openEntry, ProfileSummary } from './entry.ts'
import { ALLOW_ACTION, allowedOf, LOG_ACTION, namesOf, profileArchitectures, type Workload } from './names.ts'
import { DENIAL_REASONS, type RollupRow } from './rollup.ts'

/** A seccomp profile that allows the observed syscalls and logs all others. */
export const Profile = z
  .strictObject({
    defaultAction: z.literal(LOG_ACTION),
    architectures: z.array(z.string()),
    syscalls: z.array(z.strictObject({ names: z.array(z.string()), action: z.literal(ALLOW_ACTION) })).max(1),
  })
  .meta({ id: 'SeccompDocument' })

/** GET /seccomp/profiles/{namespace}/{kind}/{name}. */
export const ObservedProfile = ProfileSummary.extend({
  denialsReason: z.enum(DENIAL_REASONS).nullable().describe('Why `denials` is null; null where they are known.'),
  denialsReasonDetail: ReasonDetail.nullable(),
  profile: Profile,
  detail: ProfileDetail.optional().describe('With `detail=true`.'),
}).meta({ id: 'ObservedSeccompProfile' })

/** The profile of the observed syscalls, without names that cannot be names of syscalls. */
export function profileOf({ names, arches }: Record<'names' | 'arches', readonly string[]>): z.output<typeof Profile> {
  const allowed = [...allowedOf(names).names]
  return {
    defaultAction: LOG_ACTION,
    architectures: profileArchitectures(arches),
    syscalls: allowed.length === 0 ? [] : [{ names: allowed, action: ALLOW_ACTION }],
  }
}

/** 404: nothing was observed of the workload, or nothing since its set was reset. */
export const noProfile = (resetAt: string | null = null) =>
  new HttpError(
    404,
    'there is no seccomp profile for that workload' +
      (resetAt === null ? '' : `: nothing was observed since it was reset at ${resetAt}`),
  )

/** A requested workload. */
export interface AskedProfile extends Workload {
  /** Whether to include when each name was seen. */
  readonly detail: boolean
}

interface Row extends EntryRow, RollupRow, DetailRow {
  readonly n: number
  readonly detail: boolean
  readonly syscalls: string
  readonly denials_reason: string | null
  readonly denials_detail: object | null
}

// The counts of nodes by file set are one JSON object, in which a look-up takes the same time however many sets there
// are.
const statement = fixed<Row[]>(`
  with state as materialized (
    select w.is_watched, a.days, retention_start(a.days) as retention_start, coalesce(l.live, 0)::integer as live, l.nodes_of
    from (select $1::integer as days) a
    cross join lateral seccomp_watch(a.days) w
    cross join (
      select sum(s.nodes) as live, jsonb_object_agg(encode(s.file_set_id, 'base64'), s.nodes) as nodes_of
      from (select s.file_set_id, count(*) as nodes
            from seccomp_node s
            where $2::integer = 0 or s.updated_at >= now() at time zone 'utc' - make_interval(secs => $3::integer)
            group by s.file_set_id) s) l)
  select k.n::integer as n, w.pod_namespace as namespace, w.workload_kind as kind, w.workload_name as name, w.hash,
         w.syscall_count::float8 as syscall_count, to_json(w.arches) as arches, w.updated_at::text as updated_at,
         c.worst, c.pods, c.incomplete, to_json(c.names) as names, to_json(c.ranks) as ranks,
         coalesce(r.count, 0) as cr_count, cr.name as cr_name, cr.default_action as cr_action, cr.hash as cr_hash,
         cr.syscall_count::float8 as cr_syscall_count, to_json(cr.architectures) as cr_architectures,
         cr.updated_at::text as cr_updated_at,
         cr.ready::float8 as status_ready, cr.total::float8 as status_total, cr.state as status_state,
         w.syscalls, case when cr.syscalls <> w.syscalls then w.syscalls end as observed,
         case when cr.syscalls <> w.syscalls then cr.syscalls end as allowed,
         state.live, coalesce(f.present, 0) as present, coalesce(f.ready, 0) as ready,
         state.is_watched and not exists (
           select from seccomp_denial u
           where u.pod_namespace = w.pod_namespace and (u.workload_kind is null or u.workload_name is null)
             and u.last_seen >= state.retention_start) as is_known, g.reason as denials_reason, g.detail as denials_detail,
         k.detail, w.reset_at::text as reset_at, to_json(o.names) as seen_names, to_json(o.first_seen) as first_seen,
         to_json(o.last_seen) as last_seen, to_json(o.images) as images, to_json(o.image_digests) as image_digests,
         d.total as denied, to_json(d.syscalls) as denied_syscalls, to_json(d.actions) as denied_actions,
         d.last_seen::text as last_denied
  from state
  cross join rows from (json_to_recordset($4::text::json) as (namespace text, kind text, name text, detail boolean))
             with ordinality k(namespace, kind, name, detail, n)
  join workload_syscalls w on w.pod_namespace = k.namespace and w.workload_kind = k.kind and w.workload_name = k.name
                          and (w.syscall_count > 0 or w.reset_at is null)
  left join workload_syscalls_seen o
    on k.detail and o.pod_namespace = k.namespace and o.workload_kind = k.kind and o.workload_name = k.name
  cross join lateral denials_gap(w.pod_namespace, state.is_watched, state.days) g
  cross join lateral workload_capture(w.pod_namespace, w.workload_kind, w.workload_name) c
  left join lateral (
    select c.name, count(*) over ()::integer as count
    from seccomp_cr c
    where c.namespace = w.pod_namespace and c.workload_kind = w.workload_kind and c.workload_name = w.workload_name
    order by c.updated_at desc, c.name
    limit 1) r on true
  left join seccomp_cr cr on cr.namespace = w.pod_namespace and cr.name = r.name
  left join lateral (
    select sum(s.nodes)::integer as present,
           (sum(s.nodes) filter (where f.hash = cr.hash and cr.hash <> ''))::integer as ready
    from seccomp_file f
    cross join lateral (select (state.nodes_of ->> encode(f.file_set_id, 'base64'))::integer as nodes) s
    where f.path = $5::text || '/' || cr.namespace || '/' || cr.name || '.json') f on cr.name is not null
  left join lateral (
    select sum(p.count)::text as total, max(p.last_seen) as last_seen,
           (array_agg(distinct p.syscall) filter (where p.rank <= 800))[1:50] as syscalls,
           (array_agg(distinct p.action) filter (where p.rank <= 800))[1:16] as actions
    from (select d.syscall, d.action, sum(d.count) as count, max(d.last_seen) as last_seen,
                 row_number() over (order by d.syscall, d.action) as rank
          from seccomp_denial d
          where d.pod_namespace = w.pod_namespace and d.workload_kind = w.workload_kind
            and d.workload_name = w.workload_name
            and d.last_seen >= state.retention_start
          group by d.syscall, d.action) p) d on true`)

/** Longer than a look-up takes. */
const PATIENCE_MS = 5

/**
 * Reads the summary of a workload with its profile as JSON, or null if nothing was observed of it. Concurrent look-ups
 * are batched.
 */
export function profileReader(db: Database, config: Config) {
  return createBatcher<AskedProfile, string | null>({
    patienceMs: PATIENCE_MS,
    run: async (workloads) => {
      // Equal look-ups of one batch are sent once.
      const keys = workloads.map(({ namespace, kind, name, detail }) =>
        JSON.stringify({ namespace, kind, name, detail }),
      )
      const places = new Map([...new Set(keys)].map((key, i) => [key, i + 1]))
      const found = await readEntries(db.read, config, [...places.keys()])
      return keys.map((key) => found.get(places.get(key)!) ?? null)
    },
  })
}

/** The profile of one workload; null if nothing was observed of it. */
export async function readProfile(
  gate: Gate,
  config: Config,
  { namespace, kind, name }: Workload,
): Promise<z.output<typeof ObservedProfile> | null> {
  const found = await readEntries(gate, config, [JSON.stringify({ namespace, kind, name, detail: false })])
  const entry = found.get(1)
  return entry === undefined ? null : JSON.parse(entry)
}

/** The entries of workloads, which are JSON, by their place from 1. */
async function readEntries(gate: Gate, config: Config, keys: readonly string[]): Promise<Map<number, string>> {
  const { seccompProfileDir, seccompNodeStaleSecs, seccompDenialsRetentionDays: days } = config
  const rows = await gate((sql) =>
    statement(sql, days, seccompNodeStaleSecs, seccompNodeStaleSecs, `[${keys.join(',')}]`, seccompProfileDir),
  )
  return new Map(rows.map((row) => [row.n, wholeEntry(row, seccompProfileDir)]))
}

function wholeEntry(row: Row, directory: string): string {
  const names = namesOf(row.syscalls)
  const profile = profileOf({ names, arches: row.arches })
  const detail = row.detail ? `,"detail":${JSON.stringify(detailOf(names, row))}` : ''
  const [reason, found] = [JSON.stringify(row.denials_reason), JSON.stringify(row.denials_detail)]
  const unknown = `"denialsReason":${reason},"denialsReasonDetail":${found}`
  return `${openEntry(row, row, directory)},${unknown},"profile":${JSON.stringify(profile)}${detail}}`
}
