-- A list without repeats, in the order of first occurrence.
create or replace function without_repeats(list text[]) returns text[]
language sql immutable parallel safe
as $$
  select array(select u.item from unnest(list) with ordinality u(item, at) group by u.item order by min(u.at))
$$;
