-- The decisions that hold for an image wherever it runs: about the image or its repository, and those for the whole
-- cluster that a finding of the image has. Decisions for a workload or a namespace are none of these.
create or replace function decisions_of_image(of_digest text) returns setof vuln_decision
language plpgsql stable
set enable_nestloop = on
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
    join image_finding f on f.digest = e.digest and f.source = e.source)
  select d.*
  from (
    select d.* from vuln_decision d
    where d.ended_at is null
      and d.image_digest = any (array(select g.digest from digests g))
      and exists (select from digests g
                  where g.digest = d.image_digest and (d.image_arch is null or g.arch in ('', d.image_arch)))
    union all
    select d.* from vuln_decision d
    where d.ended_at is null and d.repository = (select m.repository from image m where m.digest = of_digest)
    union all
    select d.* from vuln_decision d
    where d.ended_at is null and d.id = any (array(
      select a.id
      from names_of_vulns(array(select distinct f.vuln_id from found f)) n
      join vuln_decision a on a.name = n.name and a.ended_at is null and a.scope_rank = 3
      where exists (
        select from found f
        where f.vuln_id = n.vuln_id and (a.package_name is null or a.package_name = f.package_name)
          and (a.package_purl is null or purl_matches(a.package_purl, f.package_purl))))) ) d
  where d.holds_until is null or d.holds_until >= (now() at time zone 'utc')::date;
end
$$;
