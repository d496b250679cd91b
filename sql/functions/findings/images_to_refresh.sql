-- The next images, by digest, that have payloads or had some at the last summary: whether their payloads (joins and
-- content included), the files that ran in their containers (`is_reread`, too) or their workloads changed since. An
-- image without payloads or without workloads counts for nothing. Images are divided into `lanes` by the last character
-- of their digest; those of one are returned.
drop function if exists images_to_refresh(text, bigint, integer);
create or replace function images_to_refresh(after text, max_looked bigint, window_secs integer, lanes integer,
                                             lane integer)
returns table (image_digest text, payloads text, is_reread boolean, is_moved boolean)
language sql stable
as $$
  with looked as materialized (
    select d.image_digest
    from ((select distinct l.image_digest from image_link l
           where l.image_digest > after and lane_of(l.image_digest, lanes) = lane
           order by l.image_digest limit max_looked)
          union
          (select s.image_digest from summary_image s
           where s.image_digest > after and lane_of(s.image_digest, lanes) = lane
           order by s.image_digest limit max_looked)) d
    order by d.image_digest
    limit max_looked),
  payloads as materialized (
    select i.image_digest, p.payloads
    from looked i
    left join lateral (
      select payloads_of(i.image_digest) as payloads
      where exists (select from workload_container w where w.image_digest = i.image_digest)) p on true),
  workloads as materialized (
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id,
           bool_or(is_running(w, window_secs)) as is_running
    from payloads p join workload_container w on w.image_digest = p.image_digest
    where p.payloads is not null
    group by w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id),
  moved as materialized (
    select coalesce(w.image_digest, s.image_digest) as image_digest
    from workloads w
    full join (select s.* from looked i join summary_workload s on s.image_digest = i.image_digest) s
      on s.image_digest = w.image_digest and s.pod_namespace = w.pod_namespace and s.workload_kind = w.workload_kind
     and s.workload_name = w.workload_name and s.cluster_id = w.cluster_id
    where s.is_running is distinct from w.is_running
    group by 1)
  select p.image_digest, p.payloads,
         p.payloads is distinct from s.payloads
         or p.payloads is not null and coalesce(n.is_file, false),
         m.image_digest is not null or p.payloads is not null and coalesce(n.is_judged, false)
  from payloads p
  left join summary_image s on s.image_digest = p.image_digest
  left join moved m on m.image_digest = p.image_digest
  left join lateral (
    select bool_or(not n.is_judged) as is_file, bool_or(n.is_judged) as is_judged
    from use_news n where n.image_digest = p.image_digest) n on true
  order by p.image_digest
$$;
