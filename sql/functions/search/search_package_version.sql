-- The package with a plain package URL that has a version; `base` is the URL without it, and `names` are the names of
-- the package, for entries without a URL. At most `max_payloads` are looked at: where none of these has it and there
-- are more, the answer is a row without a hit (docs/contract.md#search).
create or replace function search_package_version(asked text, base text, version text, names text[],
                                                  max_payloads integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable strict
set enable_bitmapscan = on
as $$
  with named as materialized (
    select package_names(null, base, names) as names),
  payloads as materialized (
    select p.digest, p.source, p.kind
    from payloads_with(array(select e.id from named n join package_entry e on e.name = any (n.names))) p
    union all
    select r.digest, r.source, r.kind from unread_payloads() r
    limit max_payloads + 1),
  -- Read as far as it is needed.
  holders as (
    select p.*
    from (select p.* from payloads p limit max_payloads) p
    cross join named n
    where exists (
        select from (select c.purl, c.version, c.name from image_component c
                     where p.kind = 'sbom' and c.digest = p.digest and c.source = p.source
                       and lower(c.name collate "C") = any (n.names) offset 0) c
        where purl_plain(c.purl) = asked
           or c.purl is null and c.version = search_package_version.version
              and (lower(c.name collate "C") = any (search_package_version.names)
                   or artifact_of(c.name) = any (search_package_version.names)))
      or exists (
        select from (select f.package_purl, f.installed_version, f.package_name from image_finding f
                     where p.kind = 'vulnerabilities' and f.digest = p.digest and f.source = p.source
                       and lower(f.package_name) = any (n.names) offset 0) f
        where purl_plain(f.package_purl) = asked
           or f.package_purl is null and f.installed_version = search_package_version.version
              and (lower(f.package_name) = any (search_package_version.names)
                   or artifact_of(f.package_name) = any (search_package_version.names)))),
  found as materialized (
    select case
             when exists (select from (select h.* from holders h offset 0) h cross join lateral images_of_payload(
                            h.digest, h.source, h.kind, true, window_secs) i) then true
             when exists (select from (select h.* from holders h offset 0) h cross join lateral images_of_payload(
                            h.digest, h.source, h.kind, false, window_secs) i) then false end as runs)
  select f.runs, 0, asked, json_build_object(
           'type', 'package', 'name', null, 'purl', asked)
  from found f
  where f.runs is not null
  union all
  select null, 0, asked, null
  from found f
  where f.runs is distinct from true and (select count(*) from payloads) > max_payloads
$$;
