-- The line before which a minute that is posted now is late. To be called in a statement of its own before anything of the history is looked
-- at, so in PL/pgSQL: until the post ends no fold passes it, no day is made of rows that it adds to and no container goes that it found.
create or replace function compute_line() returns timestamp
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock_shared(x'636f6d70'::integer, 0);
  return (select f.closed_until from compute_fold f);
end
$$;
