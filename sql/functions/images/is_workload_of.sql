-- Whether a workload that a scanner reports is this workload of the inventory: the same one, or the Deployment or
-- CronJob that owns it.
create or replace function is_workload_of(seen_kind text, seen_name text, kind text, name text) returns boolean
language sql immutable parallel safe
as $$
  select seen_kind = kind and seen_name = name
      or (seen_kind = 'ReplicaSet' and kind = 'Deployment' or seen_kind = 'Job' and kind = 'CronJob')
         and starts_with(seen_name, name || '-') and substr(seen_name, length(name) + 2) ~ '^[a-z0-9]{1,12}$'
$$;
