-- The daily partitions of a table of the history, without the default partition.
create or replace function compute_days(of_table text)
returns table (day date, partition regclass)
language sql stable
as $$
  select to_date(right(c.relname, 8), 'YYYYMMDD'), c.oid::regclass
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = of_table::regclass and c.relname ~ ('^' || of_table || '_[0-9]{8}$')
$$;
