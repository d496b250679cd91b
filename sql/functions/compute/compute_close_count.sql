-- Makes minutes before this time late for counting from now on; false if posts under way take too long to end.
create or replace function compute_close_count(until timestamp) returns boolean
language plpgsql strict
as $$
begin
  if not exists (select from compute_fold f where f.count_closed_until < until) then
    return true;
  end if;
  if not compute_lock_posts() then
    return false;
  end if;
  update compute_fold f set count_closed_until = until where f.count_closed_until < until;
  return true;
end
$$;
