-- Merges two comma-joined lists: the names of the first, then those only the second has, without repeats.
create or replace function union_names(first text, second text) returns text
language sql immutable parallel safe
as $$
  select coalesce(string_agg(n.name, ',' order by n.at), '')
  from (select u.name, min(u.at) as at
        from unnest(string_to_array(first, ',') || string_to_array(second, ',')) with ordinality u(name, at)
        group by u.name) n
$$;
