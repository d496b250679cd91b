-- The vulnerabilities that have this id or that it is an alias of, with an affected image of the inventory: their place
-- (0 for the id itself, 1 for an alias), their key and their own fields (docs/contract.md#search).
create or replace function search_vulnerabilities(asked text, max_hits integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable strict
as $$
  with names as materialized (
    select vuln_names(asked) as names),
  found as materialized (
    select n.name, f.vuln_id
    from names s
    cross join lateral unnest(s.names) n(name)
    cross join lateral (
      -- The ids that differ by case only are one vulnerability.
      select min(f.vuln_id) as vuln_id from image_finding f where upper(f.vuln_id) = n.name) f
    where f.vuln_id is not null
    order by n.name <> upper(asked), n.name
    limit max_hits)
  select r.runs, case when f.name = upper(asked) then 0 else 1 end, f.vuln_id, json_build_object(
           'type', 'vulnerability', 'id', f.vuln_id, 'aliases', aliases_of(f.vuln_id))
  from found f
  cross join lateral (
    select case
      when exists (
        select from (select p.digest, p.source from image_finding p where upper(p.vuln_id) = f.name offset 0) p
        cross join lateral images_of_payload(p.digest, p.source, 'vulnerabilities', true, window_secs) i) then true
      when exists (
        select from (select p.digest, p.source from image_finding p where upper(p.vuln_id) = f.name offset 0) p
        cross join lateral images_of_payload(p.digest, p.source, 'vulnerabilities', false, window_secs) i)
        then false end as runs) r
  where r.runs is not null
$$;
