-- Deletes a set of files that no node has. Who is about to have it holds its header, and is waited for by nobody: it stays then.
create or replace function collect_file_set(candidate bytea) returns void
language plpgsql
as $$
begin
  perform from seccomp_file_set where id = candidate for update skip locked;
  -- Only under the lock it is certain that nobody came.
  if found and not exists (select from seccomp_node where file_set_id = candidate) then
    delete from seccomp_file_set where id = candidate;
  end if;
end
$$;
