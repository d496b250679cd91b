-- Counts the workloads in which every finding of a vulnerability is decided, for the cluster and per namespace: for
-- each package of each image of the workload, the decision that is shown there settles it (docs/contract.md#decisions).
-- A package URL has to match every stored finding of the package. Joins are hash joins, since PostgreSQL expects few
-- rows of each list.
create or replace function count_decided(vulns text[]) returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = on
set enable_hashjoin = on
set enable_mergejoin = on
set enable_nestloop = on
as $$
declare
  counted bigint := 0;
begin
  -- Whoever counts later sees all that was decided before, also the first decision of all.
  perform lock_decisions();
  if not exists (select from vuln_decision d where d.ended_at is null) and not exists (select from cve_decided) then
    return counted;
  end if;
  with held as materialized (
    select n.vuln_id, d.id, d.scope_rank, d.pod_namespace, d.workload_kind, d.workload_name, d.image_digest,
           d.image_arch, d.repository, d.package_name, d.package_purl, is_settled(d.decision) as is_settled,
           d.decided_at
    from names_of_vulns(vulns) n
    join vuln_decision d on d.name = n.name and d.ended_at is null
    where d.holds_until is null or d.holds_until >= (now() at time zone 'utc')::date),
  images as materialized (
    select c.vuln_id, c.image_digest, c.packages, m.repository
    from image_cve c
    left join lateral (select m.repository from image m where m.digest = c.image_digest) m on true
    where c.vuln_id = any (array(select distinct h.vuln_id from held h))),
  packages as materialized (
    select i.vuln_id, i.image_digest, i.repository, p.name as package_name
    from images i cross join unnest(i.packages) p(name)),
  found as materialized (
    select i.vuln_id, i.image_digest, f.package_name, f.package_purl
    from images i
    cross join lateral (
      select f.package_name, f.package_purl
      from (select l.digest, l.source from image_link l where l.image_digest = i.image_digest
            union
            select r.digest, r.source from image_report r
            where r.digest = i.image_digest and r.kind = 'vulnerabilities') p
      join image_finding f on upper(f.vuln_id) = upper(i.vuln_id) and f.digest = p.digest and f.source = p.source) f
    where i.vuln_id = any (array(select distinct h.vuln_id from held h where h.package_purl is not null))),
  matched as materialized (
    select h.id, f.vuln_id, f.image_digest, f.package_name
    from found f
    join held h on h.vuln_id = f.vuln_id and h.package_purl is not null
    group by h.id, f.vuln_id, f.image_digest, f.package_name
    having bool_and(coalesce(purl_matches(h.package_purl, f.package_purl), false))),
  indexes as materialized (
    select i.image_digest, g.digest, g.arch
    from (select distinct i.image_digest from images i
          where exists (select from held h where h.image_digest is not null)) i
    cross join lateral digests_of_image(i.image_digest) g),
  candidates as materialized (
    select p.vuln_id, p.image_digest, p.package_name, h.id, h.scope_rank, h.pod_namespace, h.workload_kind,
           h.workload_name, h.is_settled, h.decided_at
    from packages p
    join held h on h.vuln_id = p.vuln_id
    left join matched k on k.id = h.id and k.vuln_id = p.vuln_id and k.image_digest = p.image_digest
      and k.package_name = p.package_name
    left join indexes x on x.image_digest = p.image_digest and x.digest = h.image_digest
      and (h.image_arch is null or x.arch in ('', h.image_arch))
    where (h.package_name is null or h.package_name = p.package_name)
      and (h.package_purl is null or k.id is not null)
      and (h.scope_rank <> 1 or x.digest is not null or h.repository = p.repository)),
  places as materialized (
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id
    from summary_workload w
    where w.image_digest = any (array(select distinct i.image_digest from images i))),
  best as materialized (
    select distinct on (c.vuln_id, c.image_digest, c.package_name, w.pod_namespace, w.workload_kind, w.workload_name,
                        w.cluster_id)
           c.vuln_id, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id, c.is_settled
    from candidates c
    join places w on w.image_digest = c.image_digest
    where c.scope_rank in (1, 3)
       or (w.pod_namespace = c.pod_namespace
           and (c.scope_rank = 2 or (w.workload_kind = c.workload_kind and w.workload_name = c.workload_name)))
    order by c.vuln_id, c.image_digest, c.package_name, w.pod_namespace, w.workload_kind, w.workload_name,
             w.cluster_id, c.scope_rank, c.decided_at desc, c.is_settled, c.id desc),
  totals as materialized (
    select i.vuln_id, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id,
           sum(cardinality(i.packages)) as findings
    from images i join places w on w.image_digest = i.image_digest
    group by i.vuln_id, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id),
  settled as materialized (
    select b.vuln_id, b.pod_namespace, b.workload_kind, b.workload_name, b.cluster_id, count(*) as findings
    from best b
    where b.is_settled
    group by b.vuln_id, b.pod_namespace, b.workload_kind, b.workload_name, b.cluster_id),
  spaces as materialized (
    select t.vuln_id, t.pod_namespace as scope_namespace, count(*) as workloads
    from totals t
    join settled s on s.vuln_id = t.vuln_id and s.pod_namespace = t.pod_namespace
      and s.workload_kind = t.workload_kind and s.workload_name = t.workload_name and s.cluster_id = t.cluster_id
      and s.findings = t.findings
    group by t.vuln_id, t.pod_namespace),
  scopes as materialized (
    select s.vuln_id, s.scope_namespace, s.workloads from spaces s
    union all
    select s.vuln_id, '', sum(s.workloads)::bigint from spaces s group by s.vuln_id),
  gone as (
    delete from cve_decided d
    where d.vuln_id = any (vulns)
      and not exists (select from scopes s where s.vuln_id = d.vuln_id and s.scope_namespace = d.scope_namespace)
    returning 1),
  written as (
    insert into cve_decided as d (vuln_id, scope_namespace, workloads)
    select s.* from scopes s
    order by s.vuln_id, s.scope_namespace
    on conflict (vuln_id, scope_namespace) do update set workloads = excluded.workloads
    where d.workloads <> excluded.workloads
    returning 1)
  select (select count(*) from gone) + (select count(*) from written) into counted;
  return counted;
end
$$;
