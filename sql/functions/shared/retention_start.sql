-- The oldest moment that reads still show of a table whose rows are kept for `days`. Rows beyond it are hidden even
-- before a job deletes them. 0 days keep everything.
create or replace function retention_start(days integer) returns timestamp
language sql stable parallel safe
as $$ select case when days > 0 then now() at time zone 'utc' - make_interval(days => days) else '-infinity' end $$;
