-- Merges two lists into one, sorted by bytes and without repeats: at most `most` names of at most `most_bytes` in
-- total, a comma each included. Stored names are kept before offered ones.
create or replace function bounded_union(stored text[], offered text[], most integer, most_bytes integer) returns text[]
language sql immutable parallel safe
as $$
  select coalesce(array_agg(chosen.name order by chosen.name collate "C"), '{}')
  from (select given.name,
               row_number() over in_order as place,
               sum(octet_length(given.name) + 1) over in_order as bytes
        from (select u.name, min(u.rank) as rank
              from (select unnest(stored) as name, 0 as rank union all select unnest(offered), 1) u
              group by u.name) given
        window in_order as (order by given.rank, given.name collate "C" rows unbounded preceding)) chosen
  where chosen.place <= most and chosen.bytes <= most_bytes
$$;
