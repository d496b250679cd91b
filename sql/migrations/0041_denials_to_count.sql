-- no-transaction: The broker looks for denials that are attributed and not counted yet. They are few, and soon none.
create index concurrently if not exists seccomp_denial_to_count on seccomp_denial (id)
  where uncounted > 0 and workload_kind is not null and workload_name is not null;
