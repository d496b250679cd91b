-- The time before which a minute posted now is late. PL/pgSQL, because it must be a statement of its own before the
-- post reads any history: until the post ends no count passes that time, no partition is made of rows that it changes
-- and no container that it found is deleted.
create or replace function compute_closed_until() returns timestamp
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock_shared(x'636f6d70'::integer, 0);
  return (select f.closed_until from compute_fold f);
end
$$;
