/** Reads the latest gauges (docs/contract.md#compute). */
import { z } from 'zod'
import { sharedRead } from '../db/batcher.ts'
import { type Database, fixed } from '../db/index.ts'
import { zonedTime } from '../http/request/fields.ts'
import { asArray } from '../http/response/pages.ts'
import { storedJson } from '../records/column-kinds.ts'
import { joinedColumns, joinedPage, listReader, plainColumns, plainRows, type RawRow } from '../records/index.ts'
import { Culprit } from './blame.ts'
import { identity } from './container.ts'
import { answersOf, id, whole } from './fields.ts'
import { gauges, nodeFields } from './samples.ts'

/** Containers in an answer. */
export const MAX_LATEST = 5_000

/**
 * A container is live while its sample is younger than three of its intervals and 60 seconds: the same rule as for
 * heartbeats.
 */
const LIVE_INTERVALS = 3
const LIVE_SECS = 60

/** The latest sample of a container. */
export const LatestContainer = z
  .strictObject({
    ...answersOf(identity),
    node: z.string(),
    ...answersOf({ cgroup_id: id }),
    ts: zonedTime,
    interval_ms: whole,
    ...answersOf(gauges),
    blame: storedJson(z.array(z.strictObject(answersOf(Culprit.schema.shape))).describe('The heaviest, at most five.')),
    updated_at: zonedTime,
    blame_omitted: whole,
    blame_omitted_wait_ns: whole,
  })
  .meta({ id: 'LatestContainer' })

const { bpf_hist_update_failures, bpf_pair_update_failures, ...values } = answersOf(nodeFields)

/** The state of a node, from its latest sample or heartbeat. */
export const LatestNode = z
  .strictObject({
    node: z.string(),
    ts: zonedTime,
    interval_ms: whole,
    ...values,
    updated_at: zonedTime,
    bpf_hist_update_failures: bpf_hist_update_failures!,
    bpf_pair_update_failures: bpf_pair_update_failures!,
  })
  .meta({ id: 'LatestNode' })

/** The columns of a record, with times cut to whole seconds. */
const inSeconds = (record: z.ZodObject, alias: string) =>
  Object.entries(record.shape)
    .map(([name, schema]) =>
      schema === zonedTime ? `date_trunc('second', ${alias}.${name}) as ${name}` : `${alias}.${name}`,
    )
    .join(', ')

// A pod of the same name may be a different one, in another namespace or an earlier one, so namespace and uid are
// compared where they are known. `offset 0` makes the planner look up each pod by index, whatever it estimates.
const containersWhere = (condition: string, limit: string) => `
  select ${inSeconds(LatestContainer, 'l')}
  from compute_latest l
  where l.namespace = $1 and ${condition}
    and least(l.ts, l.updated_at) > now() at time zone 'utc'
      - make_interval(secs => ${LIVE_INTERVALS} * l.interval_ms / 1000.0 + ${LIVE_SECS})
    and not exists (
      select from pod p
      where p.pod_name = l.pod_name and p.is_dead and coalesce(p.pod_namespace, l.namespace) = l.namespace
        and coalesce(p.pod_uid, l.pod_uid) = l.pod_uid
      offset 0)
  order by l.pod_name, l.container, l.container_uid
  limit ${limit}`

/** Of pods whose record names the workload; a bare pod is a workload of the kind `Pod` with its own name. */
const OF_WORKLOAD = `exists (
      select from pod w
      cross join lateral (
        select case when is_owned(w.workload_kind, w.workload_name) then w.workload_kind else 'Pod' end as kind,
               case when is_owned(w.workload_kind, w.workload_name) then w.workload_name else w.pod_name end as name) k
      where w.pod_name = l.pod_name and w.pod_namespace = l.namespace and coalesce(w.pod_uid, l.pod_uid) = l.pod_uid
        and k.kind = coalesce($2::text, k.kind) and k.name = coalesce($3::text, k.name)
      offset 0)`

/**
 * Reads both lists in one statement, so that containers and nodes are of the same snapshot. `offset 0` makes the
 * planner look up each node by index. `plain` reads the same row by row, each container with its node: for values that
 * joined columns cannot carry.
 */
const reader = (containers: string) => ({
  joined: fixed(`
    with t as materialized (${containers}),
    n as materialized (
      select m.*
      from (select distinct t.node from t) d
      cross join lateral (select ${inSeconds(LatestNode, 'c')} from compute_node c where c.node = d.node offset 0) m
      order by m.node)
    select a.*, b.*
    from (select ${joinedColumns(LatestContainer, 't')} from t) a
    cross join (select ${joinedColumns(LatestNode, 'n')} from n) b`),
  plain: fixed(`
    select ${plainColumns(LatestContainer, 't')}, ${plainColumns(LatestNode, 'n')}
    from (${containers}) t
    left join lateral (
      select ${inSeconds(LatestNode, 'c')} from compute_node c where c.node = t.node offset 0) n on true
    order by t.pod_name, t.container, t.container_uid`),
})

const ofNamespace = reader(containersWhere('true', '$2::integer'))
const ofWorkload = reader(containersWhere(OF_WORKLOAD, '$4::integer'))

const CONTAINER_COLUMNS = Object.keys(LatestContainer.shape).length
/** Joined rows begin with two numbers, before their columns. */
const FIRST_OF_NODES = 2 + CONTAINER_COLUMNS

export interface LatestQuestion {
  readonly namespace: string
  /** Null for any. */
  readonly kind: string | null
  readonly workload: string | null
  readonly limit: number
}

/**
 * Returns a JSON object: the live containers of a namespace by pod and container, and their nodes by name
 * (docs/contract.md#compute).
 */
export const readLatest = (db: Database, { namespace, kind, workload, limit }: LatestQuestion): Promise<Buffer> =>
  sharedLatest(db, JSON.stringify([namespace, limit, kind, workload]))

const sharedLatest = sharedRead<string>(async (db, asked) => {
  const [namespace, limit, kind, workload] = JSON.parse(asked) as [string, number, string | null, string | null]
  const isOfAll = kind === null && workload === null
  const { joined, plain } = isOfAll ? ofNamespace : ofWorkload
  const values = isOfAll ? [namespace, limit] : [namespace, kind, workload, limit]
  const [row] = await db.read((sql) => joined(sql, ...values).raw())
  const containers = joinedPage(LatestContainer, row!)
  const nodes = joinedPage(LatestNode, row!, [], FIRST_OF_NODES)
  if (containers === null || nodes === null) return asPlain(await db.read((sql) => plain(sql, ...values).raw()))
  return answer(asArray(containers), asArray(nodes))
})

function asPlain(rows: readonly RawRow[]): Buffer {
  const nodes = new Map<string, RawRow>()
  for (const row of rows) {
    const node = row[CONTAINER_COLUMNS]
    if (node) nodes.set(node.toString('latin1'), row)
  }
  const inOrder = [...nodes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  return answer(
    inBrackets(plainRows(LatestContainer, rows)),
    inBrackets(plainRows(LatestNode, inOrder, CONTAINER_COLUMNS)),
  )
}

const inBrackets = (rows: Buffer) => Buffer.concat([Buffer.from('['), rows, Buffer.from(']')])

const answer = (containers: Buffer, nodes: Buffer) =>
  Buffer.concat([Buffer.from('{"containers":'), containers, Buffer.from(',"nodes":'), nodes, Buffer.from('}')])

const nodes = listReader(LatestNode, `select ${inSeconds(LatestNode, 'c')} from compute_node c order by c.node`)

/** Returns all nodes by name, as a JSON object. */
export const readNodes = sharedRead<string>(async (db) =>
  Buffer.concat([Buffer.from('{"nodes":'), asArray(await nodes(db.read)), Buffer.from('}')]),
)
