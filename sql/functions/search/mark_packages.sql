-- Marks payloads whose packages `payload_packages` has as read. It takes milliseconds and waits for no one, so that
-- ingest does not wait for the job: a row that is being written is left for the next pass.
create or replace function mark_packages(held text) returns bigint
language sql strict
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with free as materialized (
    select r.digest, r.source, r.kind, r.content_hash
    from image_report r
    where r.packages_hash is distinct from r.content_hash
      and exists (
        select from payload_packages p
        where p.digest = r.digest and p.source = r.source and p.kind = r.kind and p.content_hash = r.content_hash)
    order by r.digest, r.source, r.kind
    for no key update of r skip locked),
  marked as (
    update image_report r
    set packages_hash = f.content_hash
    from free f
    where r.digest = f.digest and r.source = f.source and r.kind = f.kind and r.content_hash = f.content_hash
    returning 1)
  select count(*) from marked
$$;
