-- The distinct vulnerabilities of images that a workload runs, counted by severity and tier, with the five of the
-- highest score by name (docs/contract.md#workload-profiles). `digests[i]` runs in `containers[i]`, and its use is
-- current where `are_current[i]` says so. States of use and tiers are those of `count_cves`, for these containers alone:
-- one that is not watched or not judged yet may use every package, and so may any where the use of its image is not
-- current. Rows of `package_use` are looked up, since an image may have many users; lists are joined without nested
-- loops, since the planner expects a few rows of each.
create or replace function vulnerabilities_of_workload(
  namespace text, kind text, name text, containers text[], digests text[], are_current boolean[])
returns table (severity smallint, tier smallint, count bigint, fixable bigint, in_use bigint, ids text[])
language sql stable
set enable_hashjoin = on
set enable_nestloop = off
set plan_cache_mode = auto
as $$
  with watched as materialized (
    select p.container, p.digest, p.is_current, u.exposure,
           u.image_digest is not null and u.reason is null as is_watched
    from unnest(containers, digests, are_current) p(container, digest, is_current)
    left join lateral (
      select u.image_digest, u.reason, u.exposure
      from container_use u
      where u.image_digest = p.digest and u.pod_namespace = namespace and u.workload_kind = kind
        and u.workload_name = name and u.container_name = p.container and u.cluster_id = 'primary'
      offset 0) u on true),
  images as materialized (
    select w.digest, bool_and(w.is_current) as is_current from watched w group by w.digest),
  hits as materialized (
    select i.digest, i.is_current, c.vuln_id, c.severity, c.is_fixable, c.max_score, c.is_provable, c.used_packages
    from images i
    cross join lateral (select c.* from image_cve c where c.image_digest = i.digest offset 0) c),
  named as materialized (
    select h.digest, h.vuln_id, p.name collate "C" as package_name
    from hits h cross join unnest(h.used_packages) p(name)
    where h.used_packages <> '{}'),
  ran as materialized (
    select n.digest, n.package_name, w.container
    from (select distinct n.digest, n.package_name from named n) n
    join watched w on w.digest = n.digest
    cross join lateral (
      select from package_use k
      where k.image_digest = n.digest and k.package_name = n.package_name and k.pod_namespace = namespace
        and k.workload_kind = kind and k.workload_name = name and k.container_name = w.container
        and k.cluster_id = 'primary'
      offset 0) k),
  used as materialized (
    select distinct n.digest, n.vuln_id, r.container
    from named n join ran r on r.digest = n.digest and r.package_name = n.package_name),
  judged as materialized (
    select h.vuln_id, h.severity, h.is_fixable, h.max_score, bool_or(u.vuln_id is not null) as is_used,
           bool_or(s.is_live) as is_live,
           coalesce(bool_or(coalesce(w.exposure = 'exposed', r.unknown_is_exposed)) filter (where s.is_live), false)
             as is_exposed
    from hits h
    join watched w on w.digest = h.digest
    left join used u on u.digest = h.digest and u.vuln_id = h.vuln_id and u.container = w.container
    join tier_rule r on r.is_only
    cross join lateral (
      select u.vuln_id is not null or not w.is_watched or not h.is_provable or not h.is_current as is_live) s
    group by h.digest, h.vuln_id, h.severity, h.is_fixable, h.max_score),
  cves as materialized (
    select j.vuln_id, min(j.severity) as severity, bool_or(j.is_fixable) as is_fixable, max(j.max_score) as max_score,
           bool_or(j.is_used) as is_used,
           min(tier_of(j.is_live, j.severity, j.is_fixable, f.kev or f.epss >= r.epss::real, j.is_exposed)) as tier
    from judged j
    join tier_rule r on r.is_only
    left join lateral (select f.kev, f.epss from cve_fact f where f.vuln_id = j.vuln_id offset 0) f on true
    group by j.vuln_id)
  select c.severity, c.tier, count(*), count(*) filter (where c.is_fixable), count(*) filter (where c.is_used),
         (array_agg(c.vuln_id order by c.max_score desc nulls last, c.vuln_id))[:5]
  from cves c
  group by c.severity, c.tier
$$;
