import { fixed, type Gate } from '../db/index.ts'
import { fromRow } from '../records/index.ts'
import { type Flow, FlowPost } from './flow.ts'
import { TrafficRow } from './record.ts'

/** A flow of a statement, and its number there. */
export type NumberedFlow = Flow & { n: number }

export interface InsertResult {
  /** The inserted flows, as uuids or, if records were requested, as records. */
  inserted: (string | { uuid: string; time_stamp: string })[]
  /** Numbers of the flows that a stored row already matches. */
  known: number[]
}

const COLUMNS = Object.keys(FlowPost.shape)
const TYPES: Readonly<Record<string, string>> = { time_stamp: 'timestamp', syn_retries: 'bigint' }
const columns = (alias: string, names = COLUMNS) => names.map((name) => `${alias}.${name}`).join(', ')

const DECLARED = COLUMNS.map((name) => `${name} ${TYPES[name] ?? 'text'}`).join(', ')
/** One text parameter for the whole document; the driver would encode a string bound to a json parameter again. */
const INPUT = `json_to_recordset($1::text::json) as i(n int, ${DECLARED})`

/**
 * Whether a stored flow has the same members, with the ports given. `offset 0` forces a look-up for each flow; without
 * it the planner may hash the whole table.
 */
const matches = (...ports: string[]) => `
  exists (select from traffic t
          where t.pod_ip = i.pod_ip and t.traffic_in_out_ip = i.traffic_in_out_ip and t.traffic_type = i.traffic_type
            and t.decision = i.decision and ${ports.map((port) => `t.${port} = i.${port}`).join(' and ')}
          offset 0)`
const KNOWN_FLOW = matches('pod_port', 'traffic_in_out_port')
const KNOWN_UDP = `(${matches('pod_port')} or ${matches('traffic_in_out_port')})`
const IS_KNOWN = `case when i.ip_protocol = 'UDP' then ${KNOWN_UDP} else ${KNOWN_FLOW} end`

/**
 * Resolves the pod and the peer of each flow at the time of the flow, as a peer a pod before a service
 * (docs/contract.md#attribution).
 */
const insertResolved = (source: string, condition: string) => `
    insert into traffic (${COLUMNS.join(', ')}, peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind,
                         peer_workload_name, peer_resolved_at, pod_workload_kind, pod_workload_name)
    select ${columns('i')},
           case when p.pod_name is not null then case when p.host_network then 'node' else 'pod' end
                when s.svc_ip is not null then 'service' end,
           case when p.pod_name is not null then p.pod_namespace else s.svc_namespace end,
           case when p.pod_name is not null then p.pod_name else s.svc_name end,
           case when p.pod_name is not null then p.pod_uid else s.svc_uid end,
           p.workload_kind, p.workload_name,
           case when p.pod_name is not null or s.svc_ip is not null then now() at time zone 'utc' end,
           o.workload_kind, o.workload_name
    from ${source}
    left join lateral pod_of_flow(i.pod_name) o on o.pod_namespace = i.pod_namespace and o.started_at <= i.time_stamp
    left join lateral pod_at_address(i.traffic_in_out_ip, i.time_stamp) p on true
    left join service s on p.pod_name is null and s.svc_ip = i.traffic_in_out_ip
    where ${condition}
    order by i.pod_ip, i.traffic_in_out_ip, i.traffic_type, i.decision, i.pod_port, i.traffic_in_out_port, i.uuid`

const IS_NEW = `i.ip_protocol is distinct from 'UDP' or not ${KNOWN_UDP}`
const INSERT_NEW = fixed(`${insertResolved(INPUT, IS_NEW)} returning uuid`)

/**
 * Inserts flows that are expected to be new, with half the work of `insertUnlessKnown`. Only UDP flows are looked up
 * first, since no unique index covers their matches; any other duplicate fails the statement with 23505, and nothing is
 * stored. Calls `onOutcomeUnknown` when an attempt may have stored flows and its answer was lost.
 */
export async function insertNew(
  gate: Gate,
  flows: NumberedFlow[],
  onOutcomeUnknown: () => void,
): Promise<InsertResult> {
  const rows = await gate((sql, isOutcomeUnknown) => {
    if (isOutcomeUnknown) onOutcomeUnknown()
    return INSERT_NEW(sql, JSON.stringify(flows)).raw()
  })
  const inserted = rows.map((row) => String(row[0]))
  if (inserted.length === flows.length) return { inserted, known: [] }
  const stored = new Set(inserted)
  return { inserted, known: flows.filter((flow) => !stored.has(flow.uuid)).map((flow) => flow.n) }
}

const INSERT_UNLESS_KNOWN = fixed(`
  with checked as materialized (
    select i.*, ${IS_KNOWN} as known from ${INPUT}),
  inserted as (
    ${insertResolved('checked i', 'not i.known')}
    on conflict do nothing
    returning case when $2::boolean then row_to_json(traffic.*) else to_json(uuid) end as answer)
  select json_build_object('inserted', (select json_agg(r.answer) from inserted r),
                           'known', (select json_agg(j.n) from checked j where j.known))`)

/**
 * Inserts the flows that no stored row matches, also against concurrent inserts, and returns which of the others
 * matched a stored row. Building a record costs more than inserting it, so only single posts request records.
 * `onOutcomeUnknown` as above.
 */
export async function insertUnlessKnown(
  gate: Gate,
  flows: NumberedFlow[],
  records: boolean,
  onOutcomeUnknown: () => void,
): Promise<InsertResult> {
  const bytes = await gate.json((sql, isOutcomeUnknown) => {
    if (isOutcomeUnknown) onOutcomeUnknown()
    return INSERT_UNLESS_KNOWN(sql, JSON.stringify(flows), records)
  })
  const { inserted, known } = JSON.parse(String(bytes)) as { inserted: Row[] | null; known: number[] | null }
  return { inserted: inserted?.map(toInserted) ?? [], known: known ?? [] }
}

// Without drop_cause, which the evaluator may have set since.
const STORED_AS_POSTED = COLUMNS.filter((name) => name !== 'drop_cause')

const ASK_OWN = fixed(`
  with posted as (select * from ${INPUT})
  select coalesce(json_agg(json_build_array(i.n, case when $2::boolean then row_to_json(t) else to_json(t.uuid) end)
                           order by i.n), '[]')
  from posted i
  cross join lateral (select * from traffic t where t.time_stamp = i.time_stamp and t.uuid = i.uuid offset 0) t
  where (${columns('t', STORED_AS_POSTED)}) is not distinct from (${columns('i', STORED_AS_POSTED)})`)

/** Returns the flows that are stored under their own uuid: number and row of each, in order. Stores nothing. */
export async function askOwn(
  gate: Gate,
  flows: NumberedFlow[],
  records: boolean,
): Promise<[n: number, row: InsertResult['inserted'][number]][]> {
  const own: [n: number, row: Row][] = JSON.parse(
    String(await gate.json((sql) => ASK_OWN(sql, JSON.stringify(flows), records))),
  )
  return own.map(([n, row]) => [n, toInserted(row)])
}

const ASK_STORED = fixed(`
  select json_build_object(
    'known', coalesce(json_agg(j.n) filter (where j.known), '[]'),
    'uuids', coalesce(json_agg(j.n) filter (where j.uuid_exists), '[]'))
  from (select i.n, ${IS_KNOWN} as known, exists (
          select from traffic t where t.time_stamp::date = i.time_stamp::date and t.uuid = i.uuid offset 0)
          as uuid_exists
        from ${INPUT}) j`)

/**
 * Returns the numbers of the flows that a stored row matches, and of those whose uuid a flow of the same day has.
 * Stores nothing.
 */
export async function askStored(gate: Gate, flows: NumberedFlow[]): Promise<{ known: number[]; uuids: number[] }> {
  return JSON.parse(String(await gate.json((sql) => ASK_STORED(sql, JSON.stringify(flows)))))
}

/** A returned row: its uuid, or all columns. */
type Row = string | Record<string, unknown>

const toInserted = (row: Row): InsertResult['inserted'][number] =>
  typeof row === 'string' ? row : (fromRow(TrafficRow, row) as { uuid: string; time_stamp: string })
