/** Values that complete a filter of flows (docs/contract.md#flow-queries). */
import { fixed, type Gate } from '../db/index.ts'
import type { Subject } from './filter.ts'
import { SUBJECTS } from './filter-parameters.ts'

export const MAX_HINTS = 50
/** Rows that are searched where no index has the values in order. */
const SEARCHED = 10_000

/** Distinct values of the first column of an index that begin with `$1`: one look-up for each. */
const distinct = (table: string, column: string, condition = 'true') => `
  select value from (
    with recursive one as (
      (select t.${column} as value from ${table} t where t.${column} >= (select p from prefix) and ${condition}
       order by t.${column} limit 1)
      union all
      select (select t.${column} from ${table} t where t.${column} > one.value and ${condition}
              order by t.${column} limit 1)
      from one
      where starts_with(one.value, (select p from prefix)))
    select one.value from one where starts_with(one.value, (select p from prefix)) limit ${MAX_HINTS}) found`

/** The namespaces that a prefix `namespace/name` may be about, one if it has a slash, with the rest of the prefix. */
const NAMESPACES = (table: string, column: string) => `
  namespaces as (
    select split_part(p, '/', 1) as namespace, substr(p, strpos(p, '/') + 1) as rest
    from prefix where strpos(p, '/') > 0
    union all
    select v.value, '' from (${distinct(table, column)}) v where strpos((select p from prefix), '/') = 0)`

/** Values `namespace/name`, by an index of both columns. */
const qualified = (table: string, namespace: string, name: string) => `
    with ${NAMESPACES(table, namespace)}
    select distinct n.namespace || '/' || t.${name} as value
    from namespaces n
    cross join lateral (
      select t.${name} from ${table} t where t.${namespace} = n.namespace and t.${name} >= n.rest
      order by t.${name} limit ${MAX_HINTS}) t
    where starts_with(t.${name}, n.rest)`

const RECENT = `(select t.* from traffic t order by t.time_stamp desc, t.uuid desc limit ${SEARCHED}) t`

const LOOK_UPS: Readonly<Partial<Record<Subject, string>>> = {
  namespace: `${distinct('pod', 'pod_namespace')} union ${distinct('service', 'svc_namespace')}`,
  node: distinct('pod', 'node_name', 'not t.is_dead'),
  pod: qualified('pod', 'pod_namespace', 'pod_name'),
  service: qualified('service', 'svc_namespace', 'svc_name'),
  workload: `
    with ${NAMESPACES('pod', 'pod_namespace')}
    select distinct n.namespace || '/' || t.workload_kind || '/' || t.workload_name as value
    from namespaces n
    cross join lateral (
      select t.workload_kind, t.workload_name from pod t
      where t.pod_namespace = n.namespace and t.workload_kind is not null and t.workload_name is not null
        and (starts_with(t.workload_name, n.rest) or starts_with(t.workload_kind || '/' || t.workload_name, n.rest))
      limit ${SEARCHED}) t`,
  label: `
    select distinct v.key || '=' || v.value as value
    from (select l.labels from pod_labels l limit ${SEARCHED}) l
    cross join lateral jsonb_each_text(l.labels) v
    where starts_with(v.key || '=' || v.value, (select p from prefix))`,
  ip: `${distinct('pod_address', 'ip')} union
    select t.traffic_in_out_ip from ${RECENT} where starts_with(t.traffic_in_out_ip, (select p from prefix))`,
  port: `
    select distinct v.port as value
    from ${RECENT}
    cross join lateral (select case t.traffic_type when 'EGRESS' then t.traffic_in_out_port
                                                   when 'INGRESS' then t.pod_port end as port) v
    where starts_with(v.port, (select p from prefix)) and v.port ~ '^[0-9]{1,5}$'`,
}

const statements = Object.fromEntries(
  Object.entries(LOOK_UPS).map(([subject, values]) => [
    subject,
    fixed<{ value: string }[]>(`
      with prefix as materialized (select $1::text collate "C" as p)
      select v.value from (${values}) v where v.value is not null order by v.value collate "C" limit ${MAX_HINTS}`),
  ]),
)

export const HINT_FIELDS = Object.keys(SUBJECTS) as Subject[]

/** The values of a filter that begin with the prefix, in byte order, at most `MAX_HINTS`. */
export async function readHints(gate: Gate, field: Subject, prefix: string): Promise<string[]> {
  const { words } = SUBJECTS[field]
  if (words !== undefined) return words.filter((word) => word.toLowerCase().startsWith(prefix.toLowerCase()))
  const rows = await gate((sql) => statements[field]!(sql, prefix))
  return rows.map(({ value }) => value)
}
