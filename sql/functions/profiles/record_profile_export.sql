-- Stores an export of a workload's profile and deletes the oldest ones beyond `most`. Exports of a workload wait for
-- each other, so that each sees those before it. `is_repeat`: an earlier attempt may have stored it already.
create or replace function record_profile_export(of_cluster text, of_namespace text, of_kind text, of_workload text,
                                                 of_revision integer, hash text, in_mode text, included text[],
                                                 of_images json, of_pod_security json, most integer, is_repeat boolean)
returns void
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(json_build_array(of_namespace, of_kind, of_workload)::text, 53));
  if is_repeat and (hash, in_mode, included) = (
       select e.content_hash, e.mode, e.artifacts
       from workload_profile_export e
       where e.pod_namespace = of_namespace and e.workload_kind = of_kind and e.workload_name = of_workload
         and e.cluster_id = of_cluster
       order by e.exported_at desc, e.id desc
       limit 1) then
    return;
  end if;
  insert into workload_profile_export (cluster_id, pod_namespace, workload_kind, workload_name, revision, content_hash,
                                       mode, artifacts, images, pod_security, exported_at)
  values (of_cluster, of_namespace, of_kind, of_workload, of_revision, hash, in_mode, included, of_images,
          of_pod_security, clock_timestamp() at time zone 'utc');
  delete from workload_profile_export e
  where e.id in (
    select o.id
    from workload_profile_export o
    where o.pod_namespace = of_namespace and o.workload_kind = of_kind and o.workload_name = of_workload
      and o.cluster_id = of_cluster
    order by o.exported_at desc, o.id desc
    offset most);
end
$$;
