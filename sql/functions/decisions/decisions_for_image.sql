-- The decisions that hold for findings of these vulnerabilities in an image, or in some of the containers that have it.
-- Without any decision in the database it is answered by one look-up.
create or replace function decisions_for_image(of_digest text, vulns text[])
returns table (vuln_id text, id bigint, scope_rank smallint, pod_namespace text, workload_kind text,
               workload_name text, package_name text, package_purl text, is_settled boolean, decided_at timestamp,
               shown json)
language plpgsql stable
set enable_nestloop = on
as $$
begin
  if not exists (select from vuln_decision d where d.ended_at is null) then
    return;
  end if;
  return query
  with digests as materialized (
    select g.digest from digests_of_image(of_digest) g),
  own as materialized (
    select (select m.repository from image m where m.digest = of_digest) as repository)
  select n.vuln_id, d.id, d.scope_rank, d.pod_namespace, d.workload_kind, d.workload_name, d.package_name,
         d.package_purl, is_settled(d.decision), d.decided_at, decision_shown(d)
  from names_of_vulns(vulns) n
  join vuln_decision d on d.name = n.name and d.ended_at is null
  where (d.holds_until is null or d.holds_until >= (now() at time zone 'utc')::date)
    and case d.scope_rank
          when 3 then true
          when 1 then d.image_digest = any (array(select g.digest from digests g))
                      or d.repository = (select o.repository from own o)
          else exists (
            select from workload_container w
            where w.image_digest = of_digest and w.pod_namespace = d.pod_namespace
              and (d.scope_rank = 2 or (w.workload_kind = d.workload_kind and w.workload_name = d.workload_name)))
        end;
end
$$;
