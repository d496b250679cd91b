-- A list without its repeats, each at its first place.
create or replace function each_once(list text[]) returns text[]
language sql immutable parallel safe
as $$
  select array(select u.item from unnest(list) with ordinality u(item, at) group by u.item order by min(u.at))
$$;
