-- Who held an address at a time. A pod that started later, or at an unknown time, never did; a dead one did up to its
-- last record. Alive before dead, then the latest start, then the newest record, then the name.
create or replace function pod_holding(address text, at timestamp) returns setof pod
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
