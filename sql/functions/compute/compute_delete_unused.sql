-- Checks the first containers after `after_id` and deletes those, at most `max_rows`, that have neither a sample nor a
-- row of history. `last_id`: where to continue, null at the end. `is_held_up`: posts under way took too long to end.
create or replace function compute_delete_unused(after_id bigint, looked bigint, max_rows bigint)
returns table (forgotten bigint, last_id bigint, is_held_up boolean)
language plpgsql strict
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict error
declare
  ids bigint[];
  found_ids bigint[];
begin
  forgotten := 0;
  is_held_up := false;
  ids := array(select c.id from compute_container c where c.id > after_id order by c.id limit looked);
  found_ids := array(select u.id from compute_unused(ids) u limit max_rows);
  last_id := case
    when cardinality(found_ids) = max_rows then found_ids[max_rows]
    when cardinality(ids) = looked then ids[looked]
  end;
  if found_ids <> '{}' then
    if compute_lock_posts() then
      -- Checked again: a post that ended meanwhile may have stored the first minute of one.
      delete from compute_container c where c.id = any (array(select u.id from compute_unused(found_ids) u));
      get diagnostics forgotten = row_count;
    else
      is_held_up := true;
    end if;
  end if;
  return next;
end
$$;
