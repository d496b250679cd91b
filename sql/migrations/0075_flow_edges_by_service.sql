-- no-transaction: `GET /flows` looks up the edges to the service that has an address, as flow_address has it.
create index concurrently if not exists flow_edge_by_service on flow_edge
  (coalesce(peer_namespace, ''), coalesce(peer_name, ''))
  where peer_kind = 'service';
