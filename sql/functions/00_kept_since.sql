-- The first moment that is kept of a table whose rows go after so many days: what is older is in no answer, whether or not it was deleted yet. 0 days
-- keep everything.
create or replace function kept_since(days integer) returns timestamp
language sql stable parallel safe
as $$ select case when days > 0 then now() at time zone 'utc' - make_interval(days => days) else '-infinity' end $$;
