-- Records the pod instances behind posted names, each name once in the document, and attributes to them the syscalls
-- that were sent before they were known (see `attribute_syscalls`). A post belongs to the instance with its uid, else
-- to the latest of the name and namespace, unless that one started at another time. A pod that changes its workload
-- counts as a new instance. A null never overwrites a stored value.
-- Nothing is written if only the time moved, by less than five minutes.
create or replace function record_pod_instances(doc json, moment timestamp) returns void
language plpgsql
as $$
declare
  step     constant interval := '5 minutes';
  max_skew constant interval := '5 minutes';
  recent   constant interval := '15 minutes';
  pods     text[];
begin
  with input as (
    select i.*, least(i.time_stamp, moment + max_skew) as posted_at
    from json_to_recordset(doc) as i(
      pod_name text, pod_namespace text, pod_uid text, started_at timestamp, workload_kind text, workload_name text,
      capture_level text,
      image_digests text[], time_stamp timestamp)
  ), matched as (
    select i.*, m.instance as known,
           coalesce(m.workload_kind <> i.workload_kind or m.workload_name <> i.workload_name, false) as is_moved
    from input i
    left join lateral (
      select e.*
      from (select e.*, row_number() over (order by e.last_post desc, e.first_post desc, e.first_seen desc,
                                           e.instance) as age
            from pod_instance e
            where e.pod_name = i.pod_name and e.pod_namespace = i.pod_namespace and e.instance <> '?') e
      where e.pod_uid = i.pod_uid
         or e.age = 1
            and (i.pod_uid is null and e.pod_uid is null
                 or (i.pod_uid is null or e.pod_uid is null) and e.last_seen >= moment - recent)
            and (i.started_at is null or e.started_at is null or e.started_at = i.started_at)
      order by (e.pod_uid = i.pod_uid) desc nulls last, e.age
      limit 1) m on true
  ), written as (
    insert into pod_instance as e (pod_name, pod_namespace, instance, pod_uid, started_at, workload_kind, workload_name,
                                   capture_level,
                                   earlier_level, level_since, is_moved, image_digests, first_post, last_post,
                                   first_seen, last_seen)
    select i.pod_name, i.pod_namespace,
           case when i.is_moved then concat_ws(' ', coalesce(i.pod_uid, i.started_at::text, ''), i.workload_kind,
                                               i.workload_name)
                else coalesce(i.known, i.pod_uid, i.started_at::text, '') end,
           i.pod_uid, i.started_at, i.workload_kind, i.workload_name, i.capture_level, i.capture_level, i.posted_at,
           i.is_moved,
           coalesce(i.image_digests, '{}'), i.posted_at, i.posted_at, moment, moment
    from matched i
    order by 1, 2, 3
    on conflict (pod_name, pod_namespace, instance) do update set
      pod_uid       = coalesce(e.pod_uid, excluded.pod_uid),
      started_at    = coalesce(e.started_at, excluded.started_at),
      workload_kind = coalesce(excluded.workload_kind, e.workload_kind),
      workload_name = coalesce(excluded.workload_name, e.workload_name),
      capture_level = case when excluded.capture_level <> e.capture_level and excluded.last_post < e.level_since
        then e.capture_level
                           else coalesce(excluded.capture_level, e.capture_level) end,
      earlier_level = case when excluded.capture_level is distinct from e.capture_level
        and excluded.capture_level is not null
                                and excluded.last_post >= e.level_since then e.capture_level else e.earlier_level end,
      level_since   = case when excluded.capture_level is distinct from e.capture_level
        and excluded.capture_level is not null
                                and excluded.last_post >= e.level_since then excluded.last_post else e.level_since end,
      image_digests = case when excluded.image_digests = '{}' then e.image_digests else excluded.image_digests end,
      first_post    = case when excluded.is_moved then excluded.first_post else e.first_post end,
      last_post     = greatest(e.last_post, excluded.last_post),
      last_seen     = greatest(e.last_seen, excluded.last_seen)
    where excluded.last_seen > e.last_seen + step
       or excluded.last_post > e.last_post + step
       or excluded.is_moved
       or e.pod_uid is null and excluded.pod_uid is not null
       or e.started_at is null and excluded.started_at is not null
       or coalesce(excluded.workload_kind, e.workload_kind) is distinct from e.workload_kind
       or coalesce(excluded.workload_name, e.workload_name) is distinct from e.workload_name
       or coalesce(excluded.capture_level, e.capture_level) is distinct from e.capture_level
       or excluded.image_digests <> e.image_digests and excluded.image_digests <> '{}'
    returning e.pod_name
  )
  select array_agg(w.pod_name) into pods from written w;

  if pods is not null then
    perform attribute_syscalls(pods, moment);
  end if;
end
$$;
