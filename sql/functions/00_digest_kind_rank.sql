-- How sure the digest is that of what runs: a later sighting only raises it.
create or replace function digest_kind_rank(kind text) returns integer
language sql immutable parallel safe
as $$ select case kind when 'repo' then 3 when 'config' then 2 when 'pinned' then 1 end $$;
