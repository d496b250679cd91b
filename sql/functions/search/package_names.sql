-- The names, in lower case, of the packages that are asked for: by a name, which may be an artifact, by a package URL
-- without version, or by both; null for any. `names` are the names of the package with this URL, for entries without
-- one.
create or replace function package_names(asked_name text, asked_purl text, names text[]) returns text[]
language sql stable
as $$
  select array_agg(distinct e.name)
  from (
    select e.name, e.artifact from package_entry e where asked_purl is null and e.name = asked_name
    union all
    select e.name, e.artifact from package_entry e where asked_purl is null and e.artifact = asked_name
    union all
    select e.name, e.artifact from package_entry e where e.purl <> '' and e.purl = asked_purl
    union all
    select e.name, e.artifact from package_entry e where asked_purl is not null and e.purl = '' and e.name = any (names)
    union all
    select e.name, e.artifact from package_entry e
    where asked_purl is not null and e.purl = '' and e.artifact = any (names)
    union all
    select u.name, u.artifact from unread_packages(coalesce(asked_purl, asked_name), asked_purl is not null, names) u
    where asked_purl is null or u.purl in (asked_purl, '')) e
  where asked_name is null or asked_name in (e.name, e.artifact)
$$;
