-- The images of the inventory of which a payload has one of the packages with these names. The payload need not stand
-- for the image.
create or replace function images_with(names text[]) returns table (image_digest text)
language sql stable
set enable_bitmapscan = on
set enable_hashjoin = on
as $$
  with payloads as materialized (
    select p.digest, p.source
    from payloads_with(array(select e.id from package_entry e where e.name = any (names))) p
    union
    select r.digest, r.source
    from unread_payloads() r
    where case r.kind
        when 'sbom' then exists (
          select from image_component c
          where c.digest = r.digest and c.source = r.source and lower(c.name collate "C") = any (names))
        else exists (
          select from image_finding f
          where f.digest = r.digest and f.source = r.source and lower(f.package_name) = any (names)) end)
  select i.image_digest
  from (select p.digest as image_digest from payloads p
        union
        select l.image_digest
        from payloads p
        cross join lateral (
          select l.image_digest from image_link l where l.digest = p.digest and l.source = p.source offset 0) l) i
  where exists (select from image m where m.digest = i.image_digest)
$$;
