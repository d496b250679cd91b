-- How much a capture tier leaves out, 0 for nothing; an unknown tier ranks between `low` and `custom`.
create or replace function capture_rank(level text) returns integer
language sql immutable parallel safe
as $$
  select case level when 'full' then 0 when 'high' then 1 when 'medium' then 2 when 'low' then 3 when 'custom' then 5
         else 4 end
$$;
