-- Locks the observed set of a workload until the transaction ends.
create or replace function lock_workload_syscalls(of_namespace text, of_kind text, of_workload text) returns void
language sql
as $$
  select pg_advisory_xact_lock(hashtextextended(json_build_array(of_namespace, of_kind, of_workload)::text, 37))
$$;
