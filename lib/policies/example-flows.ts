import { fixed, type Gate } from '../db/index.ts'
import { fromPostgres } from '../time/timestamp.ts'
import { IS_OF_EDGE } from './flows-of-edge.ts'
import type { PolicyTrial } from './trial-record.ts'

/** Edges that get an example at most. */
const MAX_EXAMPLES = 100
/** The newest flows of a pod are searched for one. */
const MAX_SEARCHED = 2_000

type Example = NonNullable<PolicyTrial['deniedEdges'][number]['example']>

const EXAMPLES = fixed<{ id: string; flow: string }[]>(`
  select e.id::text,
         json_build_object('uuid', x.uuid, 'timeStamp', x.time_stamp::text, 'podName', x.pod_name, 'podIp', x.pod_ip,
                           'peerName', x.peer_name, 'peerIp', x.traffic_in_out_ip)::text as flow
  from json_array_elements_text($1::text::json) i(id)
  join flow_edge e on e.id = i.id::uuid
  cross join lateral (
    select r.pod_name from flow_edge_pod r where r.edge_id = e.id order by r.last_new_at desc, r.pod_name limit 1) r
  cross join lateral (
    select t.*
    from (select t as flow from traffic t where t.pod_name = r.pod_name
          order by t.time_stamp desc, t.uuid desc limit ${MAX_SEARCHED}) s
    cross join lateral (select (s.flow).*) t
    cross join lateral edge_of_flow(s.flow) f
    where ${IS_OF_EDGE}
    limit 1) x`)

/** The newest stored flow of some edges, by the id of the edge. */
export async function readExamples(
  gate: Gate,
  edges: readonly { readonly edgeIds: readonly string[] }[],
): Promise<ReadonlyMap<string, Example>> {
  const ids = edges.slice(0, MAX_EXAMPLES).flatMap(({ edgeIds }) => edgeIds.slice(0, 1))
  if (ids.length === 0) return new Map()
  const rows = await gate((sql) => EXAMPLES(sql, JSON.stringify(ids)))
  return new Map(
    rows.map(({ id, flow }) => {
      const example = JSON.parse(flow) as Example
      return [id, { ...example, timeStamp: fromPostgres(example.timeStamp) }]
    }),
  )
}
