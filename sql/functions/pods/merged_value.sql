-- The value of a column after a post: the posted value, else the stored one, unless the stored one belongs to another
-- pod.
create or replace function merged_value(posted anyelement, stored anyelement, is_other boolean) returns anyelement
language sql immutable parallel safe
as $$ select coalesce(posted, case when is_other then null else stored end) $$;
