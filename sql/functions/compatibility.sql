-- For replicas of the release before `add_syscalls`, which send each pod once and read only the number of names without
-- room.
create or replace function union_syscalls(doc json) returns integer
language sql
as $$
  select a.left_out from add_syscalls(doc, null) a
$$;
