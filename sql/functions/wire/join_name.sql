-- How a payload was joined to an image, as answers name it (docs/contract.md#joins).
create or replace function join_name(rank integer) returns text
language sql immutable parallel safe
as $$
  select case rank when 1 then 'image_id' when 2 then 'platform_manifest' when 3 then 'workload_tag' when 4
         then 'report_digest' end
$$;
