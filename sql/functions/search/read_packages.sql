-- Reads the packages of the next payloads for `package_entry` and `payload_packages`: at most `max_payloads`, and no
-- more after `max_packages` entries. Returns how many payloads it read; null at the end. All is one statement, and so
-- one state of the data: a payload that is replaced meanwhile is not marked as read.
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
    select t.nth, c.name, coalesce(without_version(c.plain), '') as purl
    from todo t
    cross join lateral (
      select lower(c.name collate "C") as name, purl_plain(c.purl) as plain
      from image_component c
      where t.kind = 'sbom' and c.digest = t.digest and c.source = t.source
      union all
      select lower(f.package_name), purl_plain(f.package_purl)
      from image_finding f
      where t.kind = 'vulnerabilities' and f.digest = t.digest and f.source = t.source
      offset 0) c
    group by 1, 2, 3),
  named as materialized (
    select l.name, l.purl from listed l group by l.name, l.purl),
  known as materialized (
    select n.name, n.purl, e.id
    from named n
    left join lateral (
      select e.id from package_entry e where e.name = n.name and e.purl = n.purl offset 0) e on true),
  added as (
    insert into package_entry (name, artifact, purl)
    select k.name, artifact_of(k.name), k.purl from known k where k.id is null
    order by k.name, k.purl
    returning name, purl, id),
  ids as materialized (
    select k.name, k.purl, k.id from known k where k.id is not null
    union all
    select a.name, a.purl, a.id from added a),
  lists as materialized (
    select l.nth, array_agg(i.id order by i.id) as packages
    from listed l
    join ids i on i.name = l.name and i.purl = l.purl
    group by l.nth),
  written as (
    insert into payload_packages as p (digest, source, kind, packages)
    select t.digest, t.source, t.kind, coalesce(l.packages, '{}')
    from todo t left join lists l on l.nth = t.nth
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
