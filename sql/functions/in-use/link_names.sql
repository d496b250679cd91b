-- The names by which packages may list a library: of `libz.so.1.2.3` also `libz.so.1.2` and `libz.so.1`, which are
-- links to it. Empty for other files. Text functions take a fraction of the time of a pattern.
create or replace function link_names(path text) returns setof text
language sql immutable parallel safe
as $$
  select v.base || '.' || array_to_string(v.numbers[:n], '.')
  from (select b.base, string_to_array(right(path, -length(b.base) - 1), '.') as numbers
        from (select rtrim(path, '0123456789.') as base where strpos(path, '.so.') > 0 offset 0) b
        where right(b.base, 3) = '.so' and starts_with(split_part(path, '/', -1), 'lib') offset 0) v
  cross join generate_series(1, cardinality(v.numbers) - 1) n
  where v.numbers <> '{}' and '' <> all (v.numbers)
$$;
