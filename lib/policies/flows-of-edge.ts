const EDGE = [
  ...['traffic_type', 'pod_namespace', 'pod_workload_kind', 'pod_workload_name', 'pod_name', 'peer_kind'],
  ...['peer_namespace', 'peer_workload_kind', 'peer_workload_name', 'peer_name', 'traffic_in_out_ip', 'port'],
  ...['ip_protocol', 'decision'],
]
const columnsOf = (alias: string) => EDGE.map((name) => `${alias}.${name}`).join(', ')

/** SQL: whether a row `f` of `edge_of_flow` is that of the row `e` of `flow_edge`. */
export const IS_OF_EDGE = `row(${columnsOf('f')}) is not distinct from row(${columnsOf('e')})`
