-- How many payloads neither the job has read nor a search looks at (docs/contract.md#search).
create or replace function not_read() returns bigint
language sql stable parallel safe
as $$
  select (select count(*) from image_report r where r.packages_hash is distinct from r.content_hash)
         - (select count(*) from unread_payloads())
$$;
