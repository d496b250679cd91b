-- The vulnerabilities of images that workloads of a namespace ran before or run after a change
-- (docs/contract.md#changes): whether the images of either side have them, and for the side after also the tier and
-- whether a container executed or loaded a file of a package, as in `vulnerabilities_of_workload`. The lists are
-- parallel: pair `i` is of workload `numbers[i]`, and counts what the `sources[i]` (JSON) say. With `only_changed`,
-- those that both sides have are left out. Lists are joined without nested loops, since the planner expects a few rows
-- of each.
create or replace function cve_changes(
  namespace text, numbers integer[], kinds text[], names text[], containers text[], digests text[],
  are_after boolean[], are_current boolean[], sources text[], only_changed boolean)
returns table (n integer, vuln_id text, severity smallint, max_score real, is_fixable boolean, is_before boolean,
               is_after boolean, tier smallint, is_used boolean)
language sql stable
set enable_hashjoin = on
set enable_nestloop = off
set plan_cache_mode = auto
as $$
  with pairs as materialized (
    select p.n, p.kind, p.name, p.container, p.digest, p.is_after, p.is_current,
           array(select j.s from json_array_elements_text(p.sources::json) j(s)) as sources, u.exposure,
           u.image_digest is not null and u.reason is null as is_watched
    from unnest(numbers, kinds, names, containers, digests, are_after, are_current, sources)
      p(n, kind, name, container, digest, is_after, is_current, sources)
    left join lateral (
      select u.image_digest, u.reason, u.exposure
      from container_use u
      where p.is_after and u.image_digest = p.digest and u.pod_namespace = namespace and u.workload_kind = p.kind
        and u.workload_name = p.name and u.container_name = p.container and u.cluster_id = 'primary'
      offset 0) u on true),
  images as materialized (
    select distinct p.n, p.digest, p.is_after, p.sources from pairs p),
  hits as materialized (
    select h.*
    from (
      select i.n, i.digest, i.is_after, c.vuln_id, c.severity, c.is_fixable, c.max_score, c.is_provable,
             c.used_packages, bool_or(not i.is_after) over of_vuln as was_before,
             bool_or(i.is_after) over of_vuln as is_now
      from images i
      cross join lateral (
        select c.vuln_id, c.severity, c.is_fixable, c.max_score, c.is_provable, c.used_packages
        from image_cve c
        where c.image_digest = i.digest and c.sources && i.sources
        offset 0) c
      window of_vuln as (partition by i.n, c.vuln_id)) h
    where not only_changed or h.was_before <> h.is_now),
  facts as materialized (
    select f.vuln_id, f.kev, f.epss
    from (select distinct h.vuln_id from hits h where h.is_after) v
    cross join lateral (select f.vuln_id, f.kev, f.epss from cve_fact f where f.vuln_id = v.vuln_id offset 0) f),
  named as materialized (
    select h.n, h.digest, h.vuln_id, p.name collate "C" as package_name
    from hits h cross join unnest(h.used_packages) p(name)
    where h.is_after and h.used_packages <> '{}'),
  ran as materialized (
    select m.n, m.digest, m.package_name, p.container
    from (select distinct m.n, m.digest, m.package_name from named m) m
    join pairs p on p.n = m.n and p.digest = m.digest and p.is_after
    cross join lateral (
      select from package_use k
      where k.image_digest = m.digest and k.package_name = m.package_name and k.pod_namespace = namespace
        and k.workload_kind = p.kind and k.workload_name = p.name and k.container_name = p.container
        and k.cluster_id = 'primary'
      offset 0) k),
  used as materialized (
    select distinct m.n, m.digest, m.vuln_id, r.container
    from named m join ran r on r.n = m.n and r.digest = m.digest and r.package_name = m.package_name),
  judged as materialized (
    select h.n, h.digest, h.vuln_id, bool_or(u.vuln_id is not null) as is_used, bool_or(s.is_live) as is_live,
           coalesce(bool_or(coalesce(p.exposure = 'exposed', r.unknown_is_exposed)) filter (where s.is_live), false)
             as is_exposed
    from hits h
    join pairs p on p.n = h.n and p.digest = h.digest and p.is_after
    left join used u on u.n = h.n and u.digest = h.digest and u.vuln_id = h.vuln_id and u.container = p.container
    join tier_rule r on r.is_only
    cross join lateral (
      select u.vuln_id is not null or not p.is_watched or not h.is_provable or not p.is_current as is_live) s
    where h.is_after
    group by h.n, h.digest, h.vuln_id)
  select h.n, h.vuln_id, min(h.severity) filter (where h.is_after or not h.is_now), max(h.max_score),
         bool_or(h.is_fixable), bool_or(not h.is_after), bool_or(h.is_after),
         min(tier_of(j.is_live, h.severity, h.is_fixable, f.kev or f.epss >= r.epss::real, j.is_exposed))
           filter (where h.is_after),
         coalesce(bool_or(j.is_used), false)
  from hits h
  join tier_rule r on r.is_only
  left join judged j on j.n = h.n and j.digest = h.digest and j.vuln_id = h.vuln_id and h.is_after
  left join facts f on f.vuln_id = h.vuln_id
  group by h.n, h.vuln_id
$$;
