import { fixed, type Gate } from '../db/index.ts'
import { fromPostgres } from '../time/timestamp.ts'
import { IS_OF_EDGE } from './flows-of-edge.ts'
import type { PolicyTrial } from './trial-record.ts'

/** Edges that get an example at most, and rows of an edge that are searched for it: both sides may have reported it. */
const MAX_EXAMPLES = 100
const MAX_ROWS = 3
/** The newest flows of a pod are searched for one. */
const MAX_SEARCHED = 2_000

type Example = NonNullable<PolicyTrial['deniedEdges'][number]['example']>
type OfEdge = { readonly edgeIds: readonly string[] }

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

/** Finds the newest stored flow of an edge, of those edges that get one; null where none is stored. */
export async function readExamples(gate: Gate, edges: readonly OfEdge[]): Promise<(edge: OfEdge) => Example | null> {
  const ids = edges.slice(0, MAX_EXAMPLES).flatMap(({ edgeIds }) => edgeIds.slice(0, MAX_ROWS))
  const rows = ids.length === 0 ? [] : await gate((sql) => EXAMPLES(sql, JSON.stringify(ids)))
  const examples = new Map(
    rows.map(({ id, flow }) => {
      const example = JSON.parse(flow) as Example
      return [id, { ...example, timeStamp: fromPostgres(example.timeStamp) }]
    }),
  )
  return ({ edgeIds }) => {
    const [newest = null] = edgeIds
      .flatMap((id) => examples.get(id) ?? [])
      .sort((a, b) => (a.timeStamp > b.timeStamp ? -1 : 1))
    return newest
  }
}
