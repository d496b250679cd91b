-- The packages of images of the inventory by a text in lower case: a name, or with `is_purl` a package URL without
-- version. `prefixes`: also those that begin with it. `names` are the names of the package with this URL, for entries
-- without one. The place is `first_place` for the text itself and 2 for others (docs/contract.md#search).
create or replace function search_packages(asked text, is_purl boolean, names text[], prefixes boolean,
                                           first_place integer, max_hits integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable strict
set enable_bitmapscan = on
set enable_hashjoin = on
as $$
  with unread as materialized (
    select u.* from unread_packages(asked, is_purl, names) u),
  keys as materialized (
    select k.key
    from (select asked as key
          union
          (select distinct e.name from package_entry e
           where not is_purl and prefixes and e.name > asked and e.name < prefix_end(asked)
           order by e.name limit max_hits)
          union
          (select distinct e.artifact from package_entry e
           where not is_purl and prefixes and e.artifact > asked and e.artifact < prefix_end(asked)
           order by e.artifact limit max_hits)
          union
          (select distinct e.purl from package_entry e
           where is_purl and prefixes and e.purl <> '' and e.purl > asked and e.purl < prefix_end(asked)
           order by e.purl limit max_hits)
          union
          select unnest(case when is_purl then array[u.purl] else array[u.name, u.artifact] end) as key
          from unread u
          where prefixes) k
    where starts_with(k.key, asked)
    order by k.key
    limit max_hits),
  entries as materialized (
    select k.key, array(
             select e.id from package_entry e where not is_purl and e.name = k.key
             union select e.id from package_entry e where not is_purl and e.artifact = k.key
             union select e.id from package_entry e where is_purl and e.purl <> '' and e.purl = k.key
             union select e.id from package_entry e
                   where is_purl and k.key = asked and e.purl = '' and e.name = any (names)
             union select e.id from package_entry e
                   where is_purl and k.key = asked and e.purl = '' and e.artifact = any (names)) as ids
    from keys k),
  found as (
    select e.key, case
             when exists (
               select from (select p.* from payloads_with(e.ids) p offset 0) p
               cross join lateral images_of_payload(p.digest, p.source, p.kind, true, window_secs) i)
               or exists (
               select from unread u
               cross join lateral images_of_payload(u.digest, u.source, u.kind, true, window_secs) i
               where case when is_purl then u.purl = e.key or e.key = asked and u.purl = '' and (
                                            u.name = any (names) or u.artifact = any (names))
                          else e.key in (u.name, u.artifact) end) then true
             when exists (
               select from (select p.* from payloads_with(e.ids) p offset 0) p
               cross join lateral images_of_payload(p.digest, p.source, p.kind, false, window_secs) i)
               or exists (
               select from unread u
               cross join lateral images_of_payload(u.digest, u.source, u.kind, false, window_secs) i
               where case when is_purl then u.purl = e.key or e.key = asked and u.purl = '' and (
                                            u.name = any (names) or u.artifact = any (names))
                          else e.key in (u.name, u.artifact) end) then false end as runs
    from entries e)
  select f.runs, case when f.key = asked then first_place else 2 end, f.key, json_build_object(
           'type', 'package', 'name', case when not is_purl then f.key end, 'purl', case when is_purl then f.key end)
  from found f
  where f.runs is not null
  union all
  -- There may be more, although none of these is in the inventory.
  select null, 2, '', null where (select count(*) from keys) >= max_hits
$$;
