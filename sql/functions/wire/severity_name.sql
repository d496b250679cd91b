-- A severity as answers name it.
create or replace function severity_name(severity integer) returns text
language sql immutable parallel safe
as $$
  select (array['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'])[severity + 1]
$$;
