-- Makes minutes before this time count as late from now on, also for counting; false if posts under way take too long
-- to end.
create or replace function compute_close(until timestamp) returns boolean
language plpgsql strict
as $$
begin
  if not exists (select from compute_fold f where f.closed_until < until) then
    return true;
  end if;
  if not compute_lock_posts() then
    return false;
  end if;
  update compute_fold f set closed_until = until, count_closed_until = greatest(f.count_closed_until, until)
  where f.closed_until < until;
  return true;
end
$$;
