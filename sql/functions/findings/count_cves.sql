-- Counts changed vulnerabilities, for the cluster and per namespace, and writes the counts that differ
-- (docs/contract.md#findings). Vulnerabilities of one layer come in the same images: of those with the same images,
-- joins and used packages only one is counted. States of use are 0 executed, 1 loaded, 2 unknown, 3 not observed; a
-- workload has the first of all its containers, and a vulnerability the most urgent tier.
-- Severity, score, fixes, packages and sources are cluster-wide in every namespace. Tables
-- are read by an array of ids, since outdated statistics could make the planner read them whole for a join; its lists
-- are joined without nested loops, since it expects a row of each. Vulnerabilities are divided into `lanes`, which may
-- run side by side, by the last character of their id.
drop function if exists count_cves(bigint);
create or replace function count_cves(max_cves bigint, lanes integer, lane integer)
returns table (rows bigint, cves bigint)
language sql strict
set enable_seqscan = on
set enable_bitmapscan = on
set enable_hashjoin = on
set enable_mergejoin = on
set enable_nestloop = off
set plan_cache_mode = auto
set work_mem = '32MB'
as $$
  with todo as materialized (
    select n.vuln_id from summary_news n where lane_of(n.vuln_id, lanes) = lane order by n.vuln_id limit max_cves),
  hits as materialized (
    select c.* from image_cve c where c.vuln_id = any (array(select t.vuln_id from todo t))),
  cves as materialized (
    select h.vuln_id, min(h.severity) as severity, max(h.max_score) as max_score, bool_or(h.is_fixable) as is_fixable,
           string_agg(h.image_digest || ' ' || h.join_rank || ' ' || h.is_provable || ' ' || h.used_packages::text, ','
                      order by h.image_digest) as places
    from hits h group by h.vuln_id),
  alike as materialized (
    select c.vuln_id, min(c.vuln_id) over (partition by c.places) as first_id from cves c),
  named as materialized (
    select distinct h.vuln_id, p.name from hits h cross join unnest(h.packages) p(name)),
  packages as materialized (
    select n.vuln_id, (array_agg(n.name order by n.name))[:5] as packages, count(*) as package_count
    from named n
    group by n.vuln_id),
  sources as materialized (
    select s.vuln_id, array_agg(s.source order by s.source) as sources
    from (select distinct h.vuln_id, s.source from hits h cross join unnest(h.sources) s(source)) s
    group by s.vuln_id),
  firsts as materialized (
    select h.vuln_id, h.image_digest, h.join_rank, h.is_provable, h.used_packages
    from alike a join hits h on h.vuln_id = a.vuln_id
    where a.vuln_id = a.first_id),
  placed as materialized (
    select h.vuln_id, w.pod_namespace, h.image_digest, w.cluster_id, w.workload_kind, w.workload_name, w.is_running,
           h.join_rank, h.is_provable, h.used_packages
    from firsts h join summary_workload w on w.image_digest = h.image_digest),
  rule as materialized (
    select t.epss, t.unknown_is_exposed from tier_rule t where t.is_only),
  -- A container that is not judged yet is unknown. The lateral joins look rows up, whatever the planner expects.
  used as materialized (
    select p.vuln_id, p.image_digest, p.pod_namespace, p.workload_kind, p.workload_name, p.cluster_id,
           coalesce(j.state, 2) as state, j.exposure,
           coalesce(j.exposure = 'exposed', r.unknown_is_exposed) as is_exposed
    from placed p
    cross join rule r
    cross join lateral (
      select min(case when k.is_executed then 0
                      when k.is_executed is not null then 1
                      when u.reason is not null or not p.is_provable then 2
                      else 3 end) as state,
             min(u.exposure) as exposure
      from container_use u
      left join lateral (
        select bool_or(k.is_executed) as is_executed
        from package_use k
        where p.used_packages <> '{}' and k.image_digest = u.image_digest and k.package_name = any (p.used_packages)
          and k.pod_namespace = u.pod_namespace and k.workload_kind = u.workload_kind
          and k.workload_name = u.workload_name and k.container_name = u.container_name
          and k.cluster_id = u.cluster_id) k on true
      where u.image_digest = p.image_digest and u.pod_namespace = p.pod_namespace
        and u.workload_kind = p.workload_kind and u.workload_name = p.workload_name and u.cluster_id = p.cluster_id) j),
  states as materialized (
    select w.vuln_id, w.pod_namespace, count(*) filter (where w.state = 0) as executed,
           count(*) filter (where w.state = 1) as loaded, count(*) filter (where w.state = 3) as not_observed,
           count(*) filter (where w.is_exposed) as exposed
    from (select u.vuln_id, u.pod_namespace, min(u.state) as state, bool_or(u.exposure = 'exposed') as is_exposed
          from used u
          group by u.vuln_id, u.pod_namespace, u.workload_kind, u.workload_name, u.cluster_id) w
    group by w.vuln_id, w.pod_namespace),
  urgency as materialized (
    select u.vuln_id, u.pod_namespace, u.image_digest, bool_or(u.state < 3) as is_live,
           coalesce(bool_or(u.is_exposed) filter (where u.state < 3), false) as is_exposed
    from used u
    group by u.vuln_id, u.pod_namespace, u.image_digest),
  tiers as materialized (
    select h.vuln_id, u.pod_namespace,
           min(tier_of(u.is_live, h.severity, h.is_fixable, f.kev or f.epss >= r.epss::real, u.is_exposed)) as tier
    from alike a
    join hits h on h.vuln_id = a.vuln_id
    join urgency u on u.vuln_id = a.first_id and u.image_digest = h.image_digest
    cross join rule r
    left join lateral (select f.kev, f.epss from cve_fact f where f.vuln_id = h.vuln_id offset 0) f on true
    group by h.vuln_id, u.pod_namespace),
  all_tiers as materialized (
    select t.vuln_id, t.pod_namespace as scope_namespace, t.tier from tiers t
    union all
    select t.vuln_id, '', min(t.tier) from tiers t group by t.vuln_id),
  images as materialized (
    select i.vuln_id, i.pod_namespace, count(*) as images, max(i.join_rank) as join_rank
    from (select p.vuln_id, p.pod_namespace, p.image_digest, max(p.join_rank) as join_rank
          from placed p group by p.vuln_id, p.pod_namespace, p.image_digest) i
    group by i.vuln_id, i.pod_namespace),
  workloads as materialized (
    select w.vuln_id, w.pod_namespace, count(*) as workloads, count(*) filter (where w.is_running) as running_workloads
    from (select p.vuln_id, p.pod_namespace, bool_or(p.is_running) as is_running
          from placed p group by p.vuln_id, p.pod_namespace, p.cluster_id, p.workload_kind, p.workload_name) w
    group by w.vuln_id, w.pod_namespace),
  scopes as materialized (
    select w.vuln_id, w.pod_namespace as scope_namespace, i.images, w.workloads, w.running_workloads,
           1::bigint as namespaces, i.join_rank, s.executed, s.loaded, s.not_observed, s.exposed
    from workloads w
    join images i on i.vuln_id = w.vuln_id and i.pod_namespace = w.pod_namespace
    join states s on s.vuln_id = w.vuln_id and s.pod_namespace = w.pod_namespace
    union all
    select c.vuln_id, '', c.images, w.workloads, w.running_workloads, w.namespaces, c.join_rank, s.executed, s.loaded,
           s.not_observed, s.exposed
    from (select f.vuln_id, count(*) as images, max(f.join_rank) as join_rank from firsts f group by f.vuln_id) c
    join (select w.vuln_id, sum(w.workloads)::bigint as workloads,
          sum(w.running_workloads)::bigint as running_workloads,
                 count(*) as namespaces
          from workloads w group by w.vuln_id) w on w.vuln_id = c.vuln_id
    join (select s.vuln_id, sum(s.executed)::bigint as executed, sum(s.loaded)::bigint as loaded,
                 sum(s.not_observed)::bigint as not_observed, sum(s.exposed)::bigint as exposed
          from states s group by s.vuln_id) s on s.vuln_id = c.vuln_id),
  counted as materialized (
    select c.vuln_id, s.scope_namespace, c.severity, c.is_fixable, s.images, s.workloads, s.running_workloads,
           s.namespaces, s.join_rank, t.tier, s.executed, s.loaded, s.not_observed, s.exposed
    from cves c
    join alike a on a.vuln_id = c.vuln_id
    join scopes s on s.vuln_id = a.first_id
    join all_tiers t on t.vuln_id = c.vuln_id and t.scope_namespace = s.scope_namespace),
  gone as (
    delete from cve_summary s
    where s.vuln_id = any (array(select t.vuln_id from todo t))
      and not exists (select from counted c where c.vuln_id = s.vuln_id and c.scope_namespace = s.scope_namespace)
    returning 1),
  written as (
    insert into cve_summary as s (vuln_id, scope_namespace, severity, is_fixable, images, workloads, running_workloads,
                                  namespaces, join_rank, tier, executed_workloads, loaded_workloads,
                                  not_observed_workloads, exposed_workloads)
    select c.* from counted c
    order by c.vuln_id, c.scope_namespace
    on conflict (vuln_id, scope_namespace) do update set
      severity = excluded.severity, is_fixable = excluded.is_fixable, images = excluded.images,
      workloads = excluded.workloads,
      running_workloads = excluded.running_workloads, namespaces = excluded.namespaces,
      join_rank = excluded.join_rank, tier = excluded.tier, executed_workloads = excluded.executed_workloads,
      loaded_workloads = excluded.loaded_workloads, not_observed_workloads = excluded.not_observed_workloads,
      exposed_workloads = excluded.exposed_workloads
    where s is distinct from excluded
    returning 1),
  packages_gone as (
    delete from cve_package p
    where p.vuln_id = any (array(select t.vuln_id from todo t))
      and not exists (select from named n where n.vuln_id = p.vuln_id and n.name = p.package_name)
    returning 1),
  packages_written as (
    insert into cve_package (vuln_id, package_name)
    select n.vuln_id, n.name from named n
    order by n.vuln_id, n.name
    on conflict do nothing
    returning 1),
  details_gone as (
    delete from cve_detail d
    where d.vuln_id = any (array(select t.vuln_id from todo t))
          and not exists (select from cves c where c.vuln_id = d.vuln_id)
    returning 1),
  details_written as (
    insert into cve_detail as d (vuln_id, max_score, packages, sources, package_count)
    select c.vuln_id, c.max_score, p.packages, s.sources, p.package_count
    from cves c join packages p on p.vuln_id = c.vuln_id join sources s on s.vuln_id = c.vuln_id
    order by c.vuln_id
    on conflict (vuln_id) do update set
      max_score = excluded.max_score, packages = excluded.packages, sources = excluded.sources,
      package_count = excluded.package_count
    where d is distinct from excluded
    returning 1),
  decided as materialized (
    select count_decided(array(select t.vuln_id from todo t)) as rows),
  done as (
    delete from summary_news n using todo t where n.vuln_id = t.vuln_id)
  select (select count(*) from gone) + (select count(*) from written)
         + (select count(*) from details_gone) + (select count(*) from details_written)
         + (select d.rows from decided d),
         (select count(*) from todo)
$$;
