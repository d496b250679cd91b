-- The names by which packages may list a library: of `libz.so.1.2.3` also `libz.so.1.2` and `libz.so.1`, which are
-- links to it. Empty for other files.
create or replace function link_names(path text) returns setof text
language sql immutable parallel safe
as $$
  select m.parts[1] || array_to_string((string_to_array(m.parts[2], '.'))[:n], '.')
  from regexp_match(case when strpos(path, '.so.') > 0 then path end, '^(.*/lib[^/]*\.so)((?:\.[0-9]+){2,})$') m(parts)
  cross join generate_series(2, cardinality(string_to_array(m.parts[2], '.')) - 1) n
$$;
