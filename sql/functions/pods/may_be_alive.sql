-- Whether a pod may be alive: nobody reported its end. A pod that the sweep marked dead may be, for a week: its agent
-- may be silent.
create or replace function may_be_alive(p pod) returns boolean
language sql stable parallel safe
as $$
  select not p.is_dead or p.swept_at >= greatest(p.time_stamp, now() at time zone 'utc' - interval '7 days')
$$;
