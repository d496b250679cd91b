-- The decisions that hold for an image wherever it runs: about the image or its repository, and those for the whole
-- cluster that a finding of the image has, unless one of the former says otherwise about such a finding: of two
-- statements about one product readers take the newer. Decisions for a workload or a namespace are none of these.
create or replace function decisions_of_image(of_digest text) returns setof vuln_decision
language plpgsql stable
set enable_nestloop = on
set enable_hashjoin = on
as $$
begin
  if not exists (select from vuln_decision d where d.ended_at is null) then
    return;
  end if;
  return query
  with digests as materialized (
    select g.digest, g.arch from digests_of_image(of_digest) g),
  found as materialized (
    select distinct f.vuln_id, f.package_name, f.package_purl
    from answering_reports(of_digest, 'vulnerabilities') e
    join image_finding f on f.digest = e.digest and f.source = e.source),
  own as materialized (
    select d.*
    from (
      select d.* from vuln_decision d
      where d.ended_at is null
        and d.image_digest = any (array(select g.digest from digests g))
        and exists (select from digests g
                    where g.digest = d.image_digest and (d.image_arch is null or g.arch in ('', d.image_arch)))
      union all
      select d.* from vuln_decision d
      where d.ended_at is null and d.repository = (select m.repository from image m where m.digest = of_digest)) d
    where d.holds_until is null or d.holds_until >= (now() at time zone 'utc')::date),
  names as materialized (
    select n.vuln_id, n.name from names_of_vulns(array(select distinct f.vuln_id from found f)) n),
  said as materialized (
    select n.vuln_id, o.decision, o.package_name, o.package_purl from names n join own o on o.name = n.name),
  general as materialized (
    select a.id, bool_or(s.vuln_id is not null) as is_overridden
    from names n
    join vuln_decision a on a.name = n.name and a.ended_at is null and a.scope_rank = 3
    join found f on f.vuln_id = n.vuln_id
    left join said s on s.vuln_id = f.vuln_id and s.decision <> a.decision
      and (s.package_name is null or s.package_name = f.package_name)
      and (s.package_purl is null or purl_matches(s.package_purl, f.package_purl))
    where (a.holds_until is null or a.holds_until >= (now() at time zone 'utc')::date)
      and (a.package_name is null or a.package_name = f.package_name)
      and (a.package_purl is null or purl_matches(a.package_purl, f.package_purl))
    group by a.id)
  select o.* from own o
  union all
  select d.* from vuln_decision d
  where d.id = any (array(select g.id from general g where not g.is_overridden));
end
$$;
