-- The payloads that have any of the packages with these numbers. The job has read them.
create or replace function payloads_with(entries bigint[])
returns table (digest text, source text, kind text)
language sql stable
as $$
  select p.digest, p.source, p.kind
  from payload_packages p
  where p.packages && entries
    and exists (select from image_report r
                where r.digest = p.digest and r.source = p.source and r.kind = p.kind
                  and r.packages_hash = r.content_hash)
$$;
