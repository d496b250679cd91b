-- What a column holds after a post: what was posted, else what is stored, unless that is of something else.
create or replace function kept(posted anyelement, stored anyelement, is_other boolean) returns anyelement
language sql immutable parallel safe
as $$ select coalesce(posted, case when is_other then null else stored end) $$;
