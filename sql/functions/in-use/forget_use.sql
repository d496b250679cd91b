-- Deletes the judgement of containers that left the inventory, and the used packages and the news of images without
-- reports: all files of an image are read when it gets one. Returns how many rows it deleted.
create or replace function forget_use(max_rows bigint) returns bigint
language sql strict
as $$
  with containers as (
    delete from container_use u
    where u.ctid = any (array(
      select u.ctid
      from container_use u
      where not exists (
        select from workload_container w
        where w.pod_namespace = u.pod_namespace and w.workload_kind = u.workload_kind
          and w.workload_name = u.workload_name and w.container_name = u.container_name
          and w.image_digest = u.image_digest and w.cluster_id = u.cluster_id)
      limit max_rows))
    returning 1),
  uses as (
    delete from package_use p
    where p.ctid = any (array(
      select p.ctid
      from package_use p
      where not exists (select from summary_image s where s.image_digest = p.image_digest)
      limit max_rows))
    returning 1),
  news as (
    delete from use_news n
    where n.id = any (array(
      select n.id
      from use_news n
      where not exists (select from summary_image s where s.image_digest = n.image_digest)
      limit max_rows))
    returning 1)
  select (select count(*) from containers) + (select count(*) from uses) + (select count(*) from news)
$$;
