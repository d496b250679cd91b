-- Waits until no post of history is under way and holds others back until the transaction ends; false if that takes too
-- long.
create or replace function compute_lock_posts() returns boolean
language plpgsql
set lock_timeout = '2s'
as $$
begin
  perform pg_advisory_xact_lock(x'636f6d70'::integer, 0);
  return true;
exception
  when lock_not_available then
    return false;
end
$$;
