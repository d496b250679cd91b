-- Whether a node watches for denials: its last drain had its probe attached and is younger than three of its intervals,
-- at least 300 and at most 1 800 seconds (docs/contract.md#denials).
create or replace function is_drain_current(capturing boolean, updated_at timestamp, interval_seconds bigint)
returns boolean
language sql stable parallel safe
as $$
  select capturing
     and updated_at >= now() at time zone 'utc'
                       - make_interval(secs => least(greatest(300, 3 * coalesce(interval_seconds, 0)), 1800))
$$;
