-- Compares the next images of a lane with the summary; for the first that changed it links the files that ran to
-- packages, updates the summary and lists the vulnerabilities to count again. These are at most `max_reread`, of which
-- the payloads have at most `max_items` findings and components, or one. `last` is where to continue, null at the end.
-- Two lanes may run side by side, so the list is written in the order of its key.
drop function if exists refresh_images(text, bigint, bigint, integer);
create or replace function refresh_images(after text, max_looked bigint, max_reread bigint, max_items bigint,
                                          window_secs integer, lanes integer, lane integer)
returns table (images bigint, last text)
language sql strict
set enable_seqscan = on
set enable_bitmapscan = on
set enable_hashjoin = on
set enable_mergejoin = on
set plan_cache_mode = auto
set work_mem = '32MB'
as $$
  with looked as materialized (
    select * from images_to_refresh(after, max_looked, window_secs, lanes, lane)),
  stale as materialized (
    select i.*, row_number() over (order by i.image_digest) as nth,
           sum(r.items) over (order by i.image_digest) as items_so_far
    from looked i
    cross join lateral (
      select coalesce(sum(r.item_count), 0) as items
      from image_link l
      join image_report r on r.digest = l.digest and r.source = l.source
      where i.is_reread and l.image_digest = i.image_digest) r
    where i.is_reread or i.is_moved),
  todo as materialized (
    select * from stale s where s.nth = 1 or s.nth <= max_reread and s.items_so_far <= max_items),
  workloads as materialized (
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id,
           bool_or(is_running(w, window_secs)) as is_running
    from todo t join workload_container w on w.image_digest = t.image_digest
    where t.is_moved and t.payloads is not null
    group by w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id),
  rereads as materialized (
    select array_agg(t.image_digest order by t.nth) filter (where t.payloads is not null) as images
    from todo t where t.is_reread),
  -- The lists of one relation are in one order.
  listed as materialized (
    select l.* from rereads r cross join lateral package_files(r.images) l),
  used as materialized (
    select u.*
    from rereads r
    cross join lateral packages_run(
      r.images, array(select l.image from listed l), array(select l.package_name from listed l),
      array(select l.path from listed l)) u),
  used_names as materialized (
    select u.image_digest, u.package_name from used u group by u.image_digest, u.package_name),
  lists as materialized (
    select r.images[l.image] as image_digest, l.package_name, l.is_cut or l.is_interpreted as is_cut, l.is_interpreted
    from (select l.image, l.package_name, bool_or(l.is_cut) as is_cut,
                 bool_or(is_interpreted_file(l.path)) as is_interpreted
          from listed l
          group by l.image, l.package_name) l
    cross join rereads r),
  cves as materialized (
    select c.image_digest, c.vuln_id, c.severity, c.max_score, c.is_fixable, c.packages, c.sources, c.join_rank,
           c.is_provable, c.used as used_packages
    from rereads r
    cross join lateral cves_of_images(
      r.images, array(select l.image_digest from lists l where not l.is_cut),
      array(select l.package_name from lists l where not l.is_cut),
      array(select u.image_digest from used_names u), array(select u.package_name from used_names u)) c),
  -- Only the job writes image_cve, under its lock, so a row stays in its place.
  known as materialized (
    select c.ctid as place, c.vuln_id, c.image_digest
    from todo t
    cross join lateral (
      select c.ctid, c.vuln_id, c.image_digest from image_cve c where c.image_digest = t.image_digest offset 0) c),
  gone as (
    delete from image_cve c
    where c.ctid = any (array(
      select k.place
      from known k
      join todo t on t.image_digest = k.image_digest and t.is_reread
      left join cves n on n.image_digest = k.image_digest and n.vuln_id = k.vuln_id
      where n.vuln_id is null))
    returning c.vuln_id),
  written as (
    insert into image_cve as c (vuln_id, image_digest, severity, max_score, is_fixable, packages, sources, join_rank,
                                is_provable, used_packages)
    select n.vuln_id, n.image_digest, n.severity, n.max_score, n.is_fixable, n.packages, n.sources, n.join_rank,
           n.is_provable, n.used_packages
    from cves n
    order by n.vuln_id, n.image_digest
    on conflict (vuln_id, image_digest) do update set
      severity = excluded.severity, max_score = excluded.max_score, is_fixable = excluded.is_fixable,
      packages = excluded.packages, sources = excluded.sources, join_rank = excluded.join_rank,
      is_provable = excluded.is_provable, used_packages = excluded.used_packages
    where (c.severity, c.max_score, c.is_fixable, c.packages, c.sources, c.join_rank, c.is_provable, c.used_packages)
          is distinct from (excluded.severity, excluded.max_score, excluded.is_fixable, excluded.packages,
                            excluded.sources, excluded.join_rank, excluded.is_provable, excluded.used_packages)
    returning c.vuln_id),
  unused as (
    delete from package_use p
    using todo t
    where t.is_reread and p.image_digest = t.image_digest
      and not exists (
        select from used u
        where u.image_digest = p.image_digest and u.package_name = p.package_name
          and u.pod_namespace = p.pod_namespace and u.workload_kind = p.workload_kind
          and u.workload_name = p.workload_name and u.container_name = p.container_name
          and u.cluster_id = p.cluster_id)
    returning p.image_digest, p.package_name),
  used_now as (
    insert into package_use as p (image_digest, package_name, pod_namespace, workload_kind, workload_name,
                                  container_name, cluster_id, is_executed)
    select u.* from used u
    order by u.image_digest, u.package_name, u.pod_namespace, u.workload_kind, u.workload_name, u.container_name,
             u.cluster_id
    on conflict (image_digest, package_name, pod_namespace, workload_kind, workload_name, container_name, cluster_id)
    do update set is_executed = excluded.is_executed
    where p.is_executed <> excluded.is_executed
    returning p.image_digest, p.package_name),
  used_otherwise as (
    select u.image_digest, u.package_name from unused u union select u.image_digest, u.package_name from used_now u),
  read_news as (
    delete from use_news n using todo t where n.image_digest = t.image_digest),
  news as (
    insert into summary_news (vuln_id)
    select g.vuln_id from gone g
    union select w.vuln_id from written w
    union select k.vuln_id from known k join todo t on t.image_digest = k.image_digest and t.is_moved
    union
    select n.vuln_id
    from cves n
    cross join unnest(n.packages) p(name)
    join used_otherwise u on u.image_digest = n.image_digest and u.package_name = p.name
    union
    -- Whether a decision holds depends on more than is kept here: package URLs, aliases, and the index of the image.
    select n.vuln_id
    from cves n
    where n.vuln_id in (select d.vuln_id from cve_decided d)
       or upper(n.vuln_id) in (select d.name from names_decided_on() d)
    order by vuln_id
    on conflict do nothing
    returning 1),
  left_behind as (
    delete from summary_workload s
    using todo t
    where s.image_digest = t.image_digest and t.is_moved
      and not exists (
        select from workloads w
        where w.image_digest = s.image_digest and w.pod_namespace = s.pod_namespace
              and w.workload_kind = s.workload_kind
          and w.workload_name = s.workload_name and w.cluster_id = s.cluster_id)),
  moved_in as (
    insert into summary_workload as s (image_digest, pod_namespace, workload_kind, workload_name, cluster_id,
                                       is_running)
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id, w.is_running
    from workloads w join todo t on t.image_digest = w.image_digest and t.is_moved
    on conflict (image_digest, pod_namespace, workload_kind, workload_name,
                 cluster_id) do update set is_running = excluded.is_running
    where s.is_running <> excluded.is_running),
  forgotten as (
    delete from summary_image s using todo t where s.image_digest = t.image_digest and t.is_reread
      and t.payloads is null),
  noted as (
    insert into summary_image (image_digest, payloads, whole_packages, cut_packages, interpreted_packages)
    select t.image_digest, t.payloads, coalesce(l.whole, '{}'), coalesce(l.cut, '{}'), coalesce(l.interpreted, '{}')
    from todo t
    left join (
      select l.image_digest, array_agg(l.package_name order by l.package_name) filter (where not l.is_cut) as whole,
             array_agg(l.package_name order by l.package_name) filter (where l.is_cut) as cut,
             array_agg(l.package_name order by l.package_name) filter (where l.is_interpreted) as interpreted
      from lists l
      group by l.image_digest) l on l.image_digest = t.image_digest
    where t.is_reread and t.payloads is not null
    on conflict (image_digest) do update set
      payloads = excluded.payloads, whole_packages = excluded.whole_packages, cut_packages = excluded.cut_packages,
      interpreted_packages = excluded.interpreted_packages)
  select (select count(*) from todo),
         case when exists (select from stale s where s.nth > (select count(*) from todo))
                then (select max(t.image_digest) from todo t)
              when (select count(*) from looked) = max_looked then (select max(i.image_digest) from looked i) end
$$;
