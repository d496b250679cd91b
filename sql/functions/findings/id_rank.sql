-- Preference between the ids of a vulnerability: 0 for a CVE, 1 for a GHSA id, 2 for any other.
create or replace function id_rank(id text) returns integer
language sql immutable parallel safe
as $$
  select case when upper(id) like 'CVE-%' then 0 when upper(id) like 'GHSA-%' then 1 else 2 end
$$;
