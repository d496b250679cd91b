-- The decisions that hold for findings of these vulnerabilities in an image, or in some of the containers that have it:
-- a list for each vulnerability that has any, the first to be shown first, of one time those that leave work. Null
-- without any decision in the database, which is one look-up. A function of its own, so that the lists are looked up by
-- key and not joined.
create or replace function decisions_for_image(of_digest text, vulns text[]) returns jsonb
language plpgsql stable
set enable_nestloop = on
as $$
begin
  if not exists (select from vuln_decision d where d.ended_at is null) then
    return null;
  end if;
  return (
    with digests as materialized (
      select g.digest, g.arch from digests_of_image(of_digest) g),
    own as materialized (
      select (select m.repository from image m where m.digest = of_digest) as repository),
    held as materialized (
      select n.vuln_id as of_vuln, d.id, d.scope_rank, d.pod_namespace, d.workload_kind, d.workload_name,
             d.package_name, d.package_purl, d.decision, d.decided_at
      from names_of_vulns(vulns) n
      join vuln_decision d on d.name = n.name and d.ended_at is null
      where (d.holds_until is null or d.holds_until >= (now() at time zone 'utc')::date)
        and case d.scope_rank
              when 3 then true
              when 1 then exists (select from digests g
                                  where g.digest = d.image_digest
                                    and (d.image_arch is null or g.arch in ('', d.image_arch)))
                          or d.repository = (select o.repository from own o)
              else exists (
                select from workload_container w
                where w.image_digest = of_digest and w.pod_namespace = d.pod_namespace
                  and (d.scope_rank = 2 or (w.workload_kind = d.workload_kind and w.workload_name = d.workload_name)))
            end)
    select jsonb_object_agg(l.vuln_id, l.list)
    from (
      select h.of_vuln as vuln_id,
             jsonb_agg(jsonb_build_object(
               'n', h.nth, 'id', h.id, 'scope_rank', h.scope_rank, 'pod_namespace', h.pod_namespace,
               'workload_kind', h.workload_kind, 'workload_name', h.workload_name, 'package_name', h.package_name,
               'package_purl', h.package_purl, 'is_settled', is_settled(h.decision))) as list
      from (select h.*, row_number() over (partition by h.of_vuln order by h.scope_rank, h.decided_at desc,
                                           is_settled(h.decision), h.id desc) as nth
            from held h) h
      group by h.of_vuln) l);
end
$$;
