-- The answer of GET /vulnerabilities/{id}/exposure; null if no image of the inventory has the vulnerability. Lists are
-- cut at 200 images and at 200 containers that run any affected image. `shown` maps sources to their display names.
create or replace function cve_exposure(vuln text, window_hours integer, running_window_secs integer,
                                        shown jsonb) returns json
language sql stable
set enable_hashjoin = on
as $$
  with ids as materialized (
    select vuln_names(vuln) as names),
  payloads as materialized (
    select p.* from affected_payloads(vuln) p),
  affected as materialized (
    select p.image_digest, min(p.join_rank) as join_rank, array_agg(distinct p.source order by p.source) as sources,
           array_agg(distinct p.digest order by p.digest) as digests
    from payloads p
    group by p.image_digest),
  listed as materialized (
    select a.* from affected a order by a.image_digest limit 200),
  findings as materialized (
    select p.image_digest, f.vuln_id, f.source, f.severity, f.package_name, f.installed_version, f.fixed_versions
    from (select p.* from listed l join payloads p on p.image_digest = l.image_digest offset 0) p
    join image_finding f on upper(f.vuln_id) = any ((select i.names from ids i)::text[]) and f.digest = p.digest
      and f.source = p.source),
  packages as materialized (
    select f.image_digest, f.package_name, f.installed_version, min(f.severity) as severity,
           array_agg(distinct f.source order by f.source) as sources,
           array_agg(x.version order by f.source, x.version collate "C")
             filter (where x.version is not null) as fixed_versions,
           row_number() over (partition by f.image_digest order by min(f.severity), f.package_name,
                              f.installed_version) as nth
    from findings f
    left join lateral unnest(f.fixed_versions) x(version) on true
    group by f.image_digest, f.package_name, f.installed_version),
  contents as materialized (
    select p.image_digest, min(p.severity) as severity, json_agg(json_build_object(
             'name', p.package_name,
             'installedVersion', p.installed_version,
             'fixedVersions', p.fixed_versions,
             'severity', severity_name(p.severity),
             'sources', p.sources) order by p.nth) as packages
    from (select p.image_digest, p.nth, p.package_name, p.installed_version, p.severity,
                 without_repeats(p.fixed_versions) as fixed_versions, display_names(p.sources, shown) as sources
          from packages p
          where p.nth <= 50) p
    group by p.image_digest),
  containers as materialized (
    select c.*, row_number() over (order by c.is_running desc, c.pod_namespace, c.workload_kind, c.workload_name,
                                   c.container_name,
                                            c.image_digest, c.cluster_id) as nth
    from (select w.*, a.join_rank
          from affected a
          cross join lateral (
            select w.cluster_id, w.pod_namespace, w.workload_kind, w.workload_name, w.container_name, w.image_digest,
                   w.last_seen,
                   is_running(w, running_window_secs) as is_running
            from workload_container w
            where w.image_digest = a.image_digest offset 0) w) c
    order by nth
    limit 201),
  workloads as materialized (
    select w.*, row_number() over () as n
    from (select distinct c.pod_namespace, c.workload_kind, c.workload_name from containers c where c.nth <= 200) w),
  observed as materialized (
    select o.*, array_remove(array[
             case when o.other_namespaces > 0 then 'other_namespace' end,
             case when o.unattributed > 0 then 'unattributed' end,
             case when o.public_ips > 0 then 'public_ip' end,
             case when o.nodes > 0 then 'node' end], null) as ways
    from (select array_agg(w.pod_namespace order by w.n) as namespaces,
          array_agg(w.workload_kind order by w.n) as kinds,
                 array_agg(w.workload_name order by w.n) as names
          from workloads w) w
    cross join lateral network_exposure(w.namespaces, w.kinds, w.names,
                                         now() at time zone 'utc' - make_interval(hours => window_hours)) o),
  networks as materialized (
    select w.*, o.is_exposed, json_build_object(
             'windowHours', window_hours,
             'podsObserved', o.pods,
             'flowsObserved', o.flows,
             'ingressFlowsObserved', o.ingress_flows,
             'ingressFromOtherNamespaces', o.other_namespaces,
             'ingressFromUnattributedPeers', o.unattributed,
             'ingressFromPublicIps', o.public_ips,
             'ingressFromNodes', o.nodes,
             'exposed', o.is_exposed,
             'exposedVia', o.ways) as network
    from workloads w
    join (select o.*, case when o.ways <> '{}' then true
                                when o.ingress_flows > 0 and o.unknown_flows = 0 then false end as is_exposed
                                  from observed o) o on o.n = w.n),
  -- Whether a container that ran no file of the packages of the vulnerability does not use them.
  proofs as materialized (
    select f.image_digest, array_agg(distinct f.package_name) as names,
           bool_and(coalesce(c.is_provable, false)) and is_use_current(f.image_digest) as is_provable
    from findings f
    left join lateral (
      select c.is_provable from image_cve c where c.vuln_id = f.vuln_id and c.image_digest = f.image_digest) c on true
    group by f.image_digest),
  rows as materialized (
    select c.*, n.is_exposed, n.network,
           case when u.is_executed then 0
                when u.is_executed is not null then 1
                when p.is_provable and j.image_digest is not null and j.reason is null then 3
                else 2 end as state
    from containers c
    join networks n
      on n.pod_namespace = c.pod_namespace and n.workload_kind = c.workload_kind and n.workload_name = c.workload_name
    left join proofs p on p.image_digest = c.image_digest
    left join container_use j on j.image_digest = c.image_digest and j.pod_namespace = c.pod_namespace
      and j.workload_kind = c.workload_kind and j.workload_name = c.workload_name
      and j.container_name = c.container_name and j.cluster_id = c.cluster_id
    left join lateral (
      select bool_or(u.is_executed) as is_executed
      from package_use u
      where u.image_digest = c.image_digest and u.package_name = any (p.names) and u.pod_namespace = c.pod_namespace
        and u.workload_kind = c.workload_kind and u.workload_name = c.workload_name
        and u.container_name = c.container_name and u.cluster_id = c.cluster_id) u on true
    where c.nth <= 200),
  namespaces as materialized (
    select w.pod_namespace, count(*) as workloads, count(*) filter (where w.is_running) as running,
           count(*) filter (where w.is_exposed) as exposed, count(*) filter (where w.is_exposed is null) as unknown
    from (select r.pod_namespace, bool_or(r.is_running) as is_running, bool_or(r.is_exposed) as is_exposed
          from rows r
          group by r.cluster_id, r.pod_namespace, r.workload_kind, r.workload_name) w
    group by w.pod_namespace),
  cut as materialized (
    select array_remove(array[
             case when (select count(*) from affected) > 200 then 'images' end,
             case when exists (select from packages p where p.nth > 50) then 'packages' end,
             case when exists (select from containers c where c.nth > 200) then 'workloads' end], null) as lists),
  aliases as materialized (
    select min(a.alias) as alias
    from (select distinct f.vuln_id from findings f) f
    cross join lateral (select f.vuln_id as alias union select unnest(aliases_of(f.vuln_id))) a
    where upper(a.alias) <> upper(vuln) and upper(a.alias) = any ((select i.names from ids i)::text[])
    group by upper(a.alias))
  select json_build_object(
    'id', vuln,
    'aliases', (select coalesce(json_agg(a.alias order by a.alias), '[]') from aliases a),
    'severity', (select severity_name(min(f.severity)) from findings f),
    'fixable', (select bool_or(f.fixed_versions <> '{}') from findings f),
    'images', (
      select json_agg(json_build_object(
        'digest', l.image_digest,
        'repository', m.repository,
        'tags', m.tags,
        'sources', display_names(l.sources, shown),
        'reportDigests', l.digests,
        'join', join_name(l.join_rank),
        'severity', severity_name(c.severity),
        'packages', c.packages) order by l.image_digest)
      from listed l
      join contents c on c.image_digest = l.image_digest
      cross join lateral (select m.* from image m where m.digest = l.image_digest offset 0) m),
    'workloads', (
      select coalesce(json_agg(json_build_object(
        'clusterId', r.cluster_id,
        'namespace', r.pod_namespace,
        'kind', r.workload_kind,
        'name', r.workload_name,
        'container', r.container_name,
        'imageDigest', r.image_digest,
        'join', join_name(r.join_rank),
        'running', r.is_running,
        'lastSeen', wire_time(r.last_seen),
        'network', r.network,
        'inUse', case when r.state < 2 then true when r.state = 3 then false end,
        'inUseState', use_state_name(r.state)) order by r.nth), '[]')
      from rows r),
    'namespaces', (
      select coalesce(json_agg(json_build_object(
        'namespace', n.pod_namespace,
        'workloads', n.workloads,
        'runningWorkloads', n.running,
        'exposedWorkloads', n.exposed,
        'unknownExposureWorkloads', n.unknown) order by n.pod_namespace), '[]')
      from namespaces n),
    'truncated', (select c.lists <> '{}' from cut c),
    'truncatedLists', (select c.lists from cut c),
    'inUse', (select case when min(r.state) < 2 then true when min(r.state) = 3 then false end from rows r),
    'inUseState', (select use_state_name(coalesce(min(r.state), 2)) from rows r))
  where exists (select from affected)
$$;
