-- How suspicious the place of a file was when it ran (docs/contract.md#executables); of several reports the highest
-- counts.
create or replace function origin_rank(origin text) returns integer
language sql immutable parallel safe
as $$
  select case origin when 'unknown' then 0 when 'image' then 1 when 'otherFs' then 2 when 'deleted' then 3
         when 'writableLayer' then 4
                     when 'memfd' then 5 end
$$;
