-- Makes the partitions of today, tomorrow and each day since `kept_from` with rows in the default partition, and moves
-- these rows; at most `max_moved` rows a call, the days with the fewest first. `waiting`: days that are left.
-- `is_held_up`: nothing was done, since another session held the table for longer than two seconds. Minutes and waits
-- of days that are counted are packed or moved within hours and need no partition. Posts of history wait meanwhile: a
-- row on its way to the default partition would be refused once its day has one. Rows of minutes and waits leave their
-- partition after hours: it is vacuumed often, so that new rows take their place and it stays as small as these hours.
create or replace function compute_make_days(of_table text, kept_from date, max_moved bigint)
returns table (made integer, moved bigint, waiting integer, is_held_up boolean)
language plpgsql strict
set lock_timeout = '2s'
set default_tablespace = ''
set enable_seqscan = on
as $$
#variable_conflict error
declare
  today date := now() at time zone 'utc';
  other regclass := (of_table || '_other')::regclass;
  days date[];
  a_day date;
  moved_now bigint;
  first_day date := kept_from;
begin
  made := 0;
  moved := 0;
  is_held_up := false;
  if of_table in ('compute_minute', 'compute_contention') then
    select greatest(kept_from, f.counted_until::date) into strict first_day from compute_fold f;
  end if;
  execute format('
    select coalesce(array_agg(w.day order by w.day) filter (where w.so_far <= $3), ''{}''), count(*)
           filter (where w.so_far > $3)
    from (
      select w.day, sum(sum(w.rows)) over (order by sum(w.rows), w.day) as so_far
      from (
        select o.ts::date as day, count(*) as rows from %s o where o.ts >= $1 and o.ts < $2 + 2 group by 1
        union all values ($2, 0), ($2 + 1, 0)) w
      where not exists (select from compute_days($4) d where d.day = w.day)
      group by w.day) w', other)
  into days, waiting
  using first_day, today, max_moved, of_table;
  if days = '{}' then
    return next;
    return;
  end if;

  begin
    -- A running count holds the table for seconds: posts must not queue behind our lock request.
    perform from compute_fold f for update nowait;
    if not compute_lock_posts() then
      raise lock_not_available;
    end if;
    -- The table itself, too: a read that only waited for the default partition would not know the new ones.
    execute format('lock table only %s in access exclusive mode', of_table::regclass);
    execute format('lock table %s in access exclusive mode', other);
    foreach a_day in array days loop
      -- Another process may have created it.
      continue when exists (select from compute_days(of_table) d where d.day = a_day);
      execute (
        select format('create table %1$I.%2$I (like %3$s including defaults including constraints including storage) %7$s;
                       with moved as (delete from %4$s where ts >= %5$L and ts < %6$L returning *)
                       insert into %1$I.%2$I select * from moved',
                      n.nspname, of_table || to_char(a_day, '_YYYYMMDD'), of_table::regclass, other, a_day, a_day + 1,
                      case when of_table in ('compute_minute', 'compute_contention', 'compute_contention_kept')
                        then 'with (autovacuum_vacuum_scale_factor = 0.05)' end)
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = of_table::regclass);
      get diagnostics moved_now = row_count;
      execute (
        select format('alter table %s attach partition %I.%I for values from (%L) to (%L)',
                      of_table::regclass, n.nspname, of_table || to_char(a_day, '_YYYYMMDD'), a_day, a_day + 1)
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = of_table::regclass);
      made := made + 1;
      moved := moved + moved_now;
    end loop;
  exception
    when lock_not_available then
      made := 0;
      moved := 0;
      waiting := waiting + cardinality(days);
      is_held_up := true;
  end;
  return next;
end
$$;
