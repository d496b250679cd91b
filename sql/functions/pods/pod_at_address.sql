-- The pod that held an address at a given time (docs/contract.md#attribution). A pod that started later, or whose start
-- is unknown, never did; a dead pod did until its last record. Living pods come before dead ones, then the latest
-- start, the newest record, the name.
create or replace function pod_at_address(address text, at timestamp) returns setof pod
language sql stable parallel safe rows 1
as $$
  select p.*
  from pod_address a
  join pod p on p.pod_name = a.pod_name
  where a.ip = address
    and p.started_at <= at
    and (not p.is_dead or p.time_stamp >= at)
  order by p.is_dead, p.started_at desc, p.time_stamp desc, p.pod_name
  limit 1
$$;
