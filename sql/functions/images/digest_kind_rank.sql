-- How certain it is that the digest is the one that runs; later reports only raise it.
create or replace function digest_kind_rank(kind text) returns integer
language sql immutable parallel safe
as $$ select case kind when 'repo' then 3 when 'config' then 2 when 'pinned' then 1 end $$;
