-- Source names as answers write them, in the order of the stored names. `shown` maps a stored name to its display name
-- where the two differ.
create or replace function display_names(names text[], shown jsonb) returns text[]
language sql immutable parallel safe
as $$
  select array(select coalesce(shown ->> u.name, u.name) from unnest(names) with ordinality u(name, at) order by u.at)
$$;
