-- How much is left out of what a pod contributed, by the ranks of `capture_rank`; null where it does not count: it sent nothing since the set was
-- begun. One that had sent something before captures all and has not all of it in the set, since agents send a name once: it counts for nothing
-- at `full`, and at what it is below. `is_awaited`: something under its name waits to be given to a pod.
create or replace function contribution_rank(c syscall_contribution, is_awaited boolean) returns integer
language sql immutable parallel safe
as $$
  select case
    when is_awaited or c.is_doubtful then greatest(capture_rank(c.capture_level), 4)
    when c.cut_at is not null and (c.level_at <= c.cut_at or c.capture_level = 'full') then null
    else capture_rank(c.capture_level)
  end
$$;
