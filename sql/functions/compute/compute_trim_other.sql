-- Deletes rows of the default partition whose days would be dropped, at most `max_rows`; returns how many. It waits two
-- seconds for a lock.
create or replace function compute_trim_other(of_table text, kept_from date, max_rows bigint) returns bigint
language plpgsql strict
set lock_timeout = '2s'
set enable_seqscan = on
as $$
#variable_conflict error
declare
  folded_day date;
  deleted bigint;
begin
  if of_table = 'compute_minute' then
    select least(f.folded_until, f.counted_until)::date into strict folded_day from compute_fold f;
  end if;
  execute format('
    delete from %1$s where ctid = any (array(
      select o.ctid from %1$s o where o.ts < $1 %2$s limit $3))',
    (of_table || '_other')::regclass, case when folded_day is not null then 'or (o.ts < $2 and not o.is_late)' end)
  using kept_from, folded_day, max_rows;
  get diagnostics deleted = row_count;
  return deleted;
end
$$;
