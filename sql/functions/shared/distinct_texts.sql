-- The distinct texts of a JSON array of arrays, sorted by bytes.
create or replace function distinct_texts(lists jsonb) returns text[]
language sql immutable parallel safe
as $$
  select array(select distinct t.value collate "C"
               from jsonb_array_elements(lists) l(list) cross join jsonb_array_elements_text(l.list) t(value)
               order by 1)
$$;
