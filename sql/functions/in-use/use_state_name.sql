-- The name of a state of use, the strongest evidence first.
create or replace function use_state_name(state integer) returns text
language sql immutable parallel safe
as $$
  select ('{executed,loaded,unknown,installed_not_observed}'::text[])[state + 1]
$$;
