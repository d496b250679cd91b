-- Names as answers write them, in the order of ours: `shown` has those that are written otherwise.
create or replace function shown_names(names text[], shown jsonb) returns text[]
language sql immutable parallel safe
as $$
  select array(select coalesce(shown ->> u.name, u.name) from unnest(names) with ordinality u(name, at) order by u.at)
$$;
