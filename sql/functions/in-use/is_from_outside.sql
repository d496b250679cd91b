-- Whether an edge of ingress exposes the workload (docs/contract.md#tiers): from another namespace, or from a peer that
-- is no known pod, service or node.
create or replace function is_from_outside(e flow_edge) returns boolean
language sql immutable parallel safe
as $$
  select case when e.peer_kind is null then e.traffic_in_out_ip is not null
              else e.peer_kind <> 'node' and e.peer_namespace is distinct from e.pod_namespace end
$$;
