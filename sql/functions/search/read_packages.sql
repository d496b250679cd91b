-- Reads the packages of the next payloads for `package_entry` and `payload_packages`: at most `max_payloads`, and no
-- more after `max_packages` entries. Returns how many payloads it read; `next` is null at the end. Names are only read of
-- payloads with a package that no other payload has. All is one statement, and so one state of the data: a payload that
-- is replaced meanwhile is not marked as read.
create or replace function read_packages(held text, max_payloads bigint, max_packages bigint)
returns table (payloads bigint, next text)
language sql strict
set enable_seqscan = off
set enable_hashjoin = on
set enable_mergejoin = off
set work_mem = '32MB'
as $$
  with unread as materialized (
    select r.digest, r.source, r.kind, r.content_hash, r.item_count
    from image_report r
    where r.packages_hash is distinct from r.content_hash
    order by r.digest, r.source, r.kind
    limit max_payloads),
  todo as materialized (
    select u.*
    from (select u.*, row_number() over places as nth, sum(u.item_count) over places - u.item_count as before
          from unread u
          window places as (order by u.digest, u.source, u.kind)) u
    where u.before < max_packages),
  listed as materialized (
    select t.nth, c.id
    from todo t
    cross join lateral (
      select package_id(c.name, c.purl) as id
      from image_component c
      where t.kind = 'sbom' and c.digest = t.digest and c.source = t.source
      union all
      select package_id(f.package_name, f.package_purl)
      from image_finding f
      where t.kind = 'vulnerabilities' and f.digest = t.digest and f.source = t.source
      offset 0) c
    group by t.nth, c.id),
  fresh as materialized (
    select l.id, l.nth
    from (select l.id, min(l.nth) as nth from listed l group by l.id) l
    left join lateral (select e.id from package_entry e where e.id = l.id offset 0) e on true
    where e.id is null),
  added as (
    insert into package_entry (id, name, artifact, purl)
    select distinct on (f.id) f.id, lower(c.name), artifact_of(c.name), coalesce(purl_base(c.purl), '')
    from (select t.* from todo t where t.nth = any (array(select f.nth from fresh f))) t
    cross join lateral (
      select c.name collate "C" as name, c.purl
      from image_component c
      where t.kind = 'sbom' and c.digest = t.digest and c.source = t.source
      union all
      select f.package_name, f.package_purl
      from image_finding f
      where t.kind = 'vulnerabilities' and f.digest = t.digest and f.source = t.source
      offset 0) c
    join fresh f on f.nth = t.nth and f.id = package_id(c.name, c.purl)
    order by f.id
    on conflict (id) do nothing),
  written as (
    insert into payload_packages as p (digest, source, kind, packages)
    select t.digest, t.source, t.kind, coalesce(l.packages, '{}')
    from todo t
    left join (select l.nth, array_agg(l.id order by l.id) as packages from listed l group by l.nth) l on l.nth = t.nth
    order by t.digest, t.source, t.kind
    on conflict (digest, source, kind) do update set packages = excluded.packages
    where p.packages <> excluded.packages),
  marked as (
    update image_report r
    set packages_hash = t.content_hash
    from todo t
    where r.digest = t.digest and r.source = t.source and r.kind = t.kind and r.content_hash = t.content_hash)
  select (select count(*) from todo),
         case when (select count(*) from unread) = max_payloads
                or (select count(*) from todo) < (select count(*) from unread) then held end
$$;
