-- Writers of decisions work one after the other: people decide rarely, and each sees what the one before has written.
create or replace function lock_decisions() returns void
language sql
as $$
  select pg_advisory_xact_lock(hashtextextended('decisions', 0))
$$;
