-- How much is missing from a pod's contribution, by the ranks of `capture_rank`; null if the pod does not count because
-- it sent nothing since the set was restarted. Agents send each name once: a pod that had sent names before a restart
-- does not count at tier `full`, and counts with its tier below that. `is_awaited`: entries under its name wait to be
-- attributed.
create or replace function contribution_rank(c syscall_contribution, is_awaited boolean) returns integer
language sql immutable parallel safe
as $$
  select case
    when is_awaited or c.is_doubtful then greatest(capture_rank(c.capture_level), 4)
    when c.cut_at is not null and (c.level_at <= c.cut_at or c.capture_level = 'full') then null
    else capture_rank(c.capture_level)
  end
$$;
