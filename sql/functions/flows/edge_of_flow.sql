-- The edge of a flow (docs/contract.md#flow-edges), in the columns of flow_edge. No row for a flow of unknown
-- direction.
create or replace function edge_of_flow(t traffic)
returns table (traffic_type text, pod_namespace text, pod_workload_kind text, pod_workload_name text, pod_name text,
               peer_kind text, peer_namespace text, peer_workload_kind text, peer_workload_name text, peer_name text,
               traffic_in_out_ip text, is_public boolean, port text, ip_protocol text, decision text)
language sql immutable parallel safe rows 1
as $$
  select t.traffic_type, t.pod_namespace, t.pod_workload_kind, t.pod_workload_name,
         case when t.pod_workload_name is null then t.pod_name end,
         t.peer_kind, case when t.peer_kind in ('pod', 'service') then t.peer_namespace end,
         case when t.peer_kind = 'pod' then t.peer_workload_kind end,
         case when t.peer_kind = 'pod' then t.peer_workload_name end,
         case when t.peer_kind = 'service' or t.peer_kind = 'pod' and t.peer_workload_name is null then t.peer_name end,
         case when t.peer_kind is null or t.peer_kind = 'node' then t.traffic_in_out_ip end,
         coalesce(is_public_address(t.traffic_in_out_ip), false),
         case t.traffic_type when 'EGRESS' then t.traffic_in_out_port else t.pod_port end, t.ip_protocol, t.decision
  where t.traffic_type in ('EGRESS', 'INGRESS')
$$;
