-- Reads the packages of the next payloads for `package_entry` and `payload_packages`: at most `max_payloads`, and no
-- more after `max_packages` entries. Returns how many payloads it read; `next` is null at the end. Names are only read
-- of payloads with a package that no other payload has. The packages of an SBOM are in the order of its components, so
-- that their positions are known. All is one statement, and so one state of the data;
-- `mark_packages` then marks the payloads that have this content.
create or replace function read_packages(held text, max_payloads bigint, max_packages bigint)
returns table (payloads bigint, next text)
language sql strict
set enable_seqscan = off
set enable_hashjoin = on
set enable_mergejoin = off
set enable_nestloop = off
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
  lists as materialized (
    select t.nth, t.digest, t.source, t.kind, t.content_hash,
           case t.kind
             when 'sbom' then array(
               select package_id(c.name, c.purl) from image_component c
               where c.digest = t.digest and c.source = t.source
               order by c.position)
             else array(
               select distinct package_id(f.package_name, f.package_purl) from image_finding f
               where f.digest = t.digest and f.source = t.source) end as packages
    from todo t),
  fresh as materialized (
    select l.id, l.nth
    from (select p.id, min(l.nth) as nth from lists l cross join unnest(l.packages) p(id) group by p.id) l
    left join lateral (select e.id from package_entry e where e.id = l.id offset 0) e on true
    where e.id is null),
  added as (
    insert into package_entry (id, name, artifact, purl)
    select distinct on (c.id) c.id, lower(c.name), artifact_of(c.name), coalesce(purl_base(c.purl), '')
    from (
      select t.nth, c.*
      from (select t.* from todo t where t.nth = any (array(select f.nth from fresh f))) t
      cross join lateral (
        select c.name collate "C" as name, c.purl, package_id(c.name, c.purl) as id
        from image_component c
        where t.kind = 'sbom' and c.digest = t.digest and c.source = t.source
        union all
        select f.package_name, f.package_purl, package_id(f.package_name, f.package_purl)
        from image_finding f
        where t.kind = 'vulnerabilities' and f.digest = t.digest and f.source = t.source
        offset 0) c
      offset 0) c
    join fresh f on f.nth = c.nth and f.id = c.id
    order by c.id
    on conflict (id) do nothing),
  written as (
    insert into payload_packages as p (digest, source, kind, content_hash, packages, is_in_order)
    select l.digest, l.source, l.kind, l.content_hash, l.packages, l.kind = 'sbom'
    from lists l
    order by l.digest, l.source, l.kind
    on conflict (digest, source, kind) do update set
      content_hash = excluded.content_hash, packages = excluded.packages, is_in_order = excluded.is_in_order
    where (p.content_hash, p.packages, p.is_in_order)
          is distinct from (excluded.content_hash, excluded.packages, excluded.is_in_order))
  select (select count(*) from todo),
         case when (select count(*) from unread) = max_payloads
                or (select count(*) from todo) < (select count(*) from unread) then held end
$$;
