-- no-transaction: `GET /flows` reads a rare filter by the pods of its edges, unless the range has flows of which edges
-- know no pod or no direction. There are hardly any.
create index concurrently if not exists traffic_without_edge on traffic (time_stamp)
  where pod_name is null or traffic_type is null or traffic_type not in ('EGRESS', 'INGRESS');
