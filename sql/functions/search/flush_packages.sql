-- Sorts the new rows of `payload_packages` into its index: until then each look-up reads all of them. Only the owner of
-- the index may; else autovacuum does it.
create or replace function flush_packages(held text) returns bigint
language sql strict
as $$
  select gin_clean_pending_list(c.oid)
  from pg_class c
  where c.oid = 'payload_packages_by_package'::regclass and pg_has_role(c.relowner, 'usage')
$$;
