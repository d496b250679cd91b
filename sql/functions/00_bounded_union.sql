-- What is stored and what is offered, each once and sorted by bytes: at most `most`, of which what is stored comes first, then the first of the
-- others.
create or replace function bounded_union(stored text[], offered text[], most integer) returns text[]
language sql immutable parallel safe
as $$
  select coalesce(array_agg(chosen.name order by chosen.name collate "C"), '{}')
  from (select given.name
        from (select unnest(stored) as name, 0 as place union all select unnest(offered), 1) given
        group by given.name
        order by min(given.place), given.name collate "C"
        limit most) chosen
$$;
