-- Drops the partitions of days before `kept_from` and, of the tables whose rows are packed or moved, those of counted
-- days from which all rows have been taken.
-- `is_held_up`: nothing was done, since another session held the table for longer than two seconds.
create or replace function compute_drop_days(of_table text, kept_from date)
returns table (dropped integer, is_held_up boolean)
language plpgsql strict
set lock_timeout = '2s'
as $$
#variable_conflict error
declare
  line timestamp;
  rolled_up_until timestamp;
  day_of record;
  is_used boolean;
  is_locked boolean := false;
begin
  dropped := 0;
  is_held_up := false;
  select case when of_table in ('compute_minute', 'compute_minute_pack', 'compute_contention') then f.counted_until
              else '-infinity' end,
         f.folded_until
         into strict line, rolled_up_until
         from compute_fold f;
  for day_of in
    select d.day, d.partition from compute_days(of_table) d where d.day < kept_from or d.day + 1 <= line order by d.day
  loop
    -- The first check avoids the lock, the second is certain: a late minute may have arrived in between.
    for looks in 1 .. 2 loop
      is_used := false;
      if day_of.day >= kept_from then
        execute format('select exists (select from %s m %s)', day_of.partition,
                       case when of_table = 'compute_minute' then 'where m.ts >= $1 or m.is_late' end)
          into is_used using rolled_up_until;
      end if;
      exit when is_used or is_locked;
      -- A running count holds the table for seconds: posts must not queue behind our lock request.
      perform from compute_fold f for update nowait;
      execute format('lock table %s in access exclusive mode', of_table::regclass);
      is_locked := true;
    end loop;
    continue when is_used;
    execute format('drop table %s', day_of.partition);
    dropped := dropped + 1;
  end loop;
  return next;
exception
  when lock_not_available then
    dropped := 0;
    is_held_up := true;
    return next;
end
$$;
