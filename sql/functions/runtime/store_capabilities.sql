-- Adds checks of capabilities to those stored, each row once in the document (docs/contract.md#capabilities). Counts
-- are added, so a retry must not be added again: rows that the same post has written stay as they are. Rows are written
-- in the order of their keys, so that concurrent posts queue without deadlock. The first time is not after the last,
-- and the last not after now.
create or replace function store_capabilities(doc json, post uuid) returns void
language plpgsql
as $$
declare
  -- The largest integer that every client reads exactly.
  max_count constant bigint := 9007199254740991;
  moment constant timestamp := clock_timestamp() at time zone 'utc';
begin
  insert into runtime_capability as c (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
                                       image_digest, capability, granted, probed,
                                       count, last_pod_name, first_seen, last_seen, last_reported, last_post)
  select 'primary', i.pod_namespace, i.workload_kind, i.workload_name, i.container_name, i.image_digest, i.capability,
         i.granted, i.probed,
         i.count, i.pod_name, least(i.first_seen, i.last_seen, moment), least(i.last_seen, moment), moment, post
  from json_to_recordset(doc) as i(
    pod_namespace text, workload_kind text, workload_name text, container_name text, image_digest text,
    capability text, granted boolean, probed boolean, count bigint, pod_name text, first_seen timestamp,
    last_seen timestamp)
  order by i.pod_namespace collate "C", i.workload_kind collate "C", i.workload_name collate "C",
           i.container_name collate "C", i.image_digest collate "C", i.capability collate "C", i.granted, i.probed
  on conflict (pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed,
               cluster_id) do update set
    count         = least(c.count + excluded.count, max_count),
    last_pod_name = coalesce(excluded.last_pod_name, c.last_pod_name),
    first_seen    = least(c.first_seen, excluded.first_seen),
    last_seen     = greatest(c.last_seen, excluded.last_seen),
    last_reported = greatest(c.last_reported, excluded.last_reported),
    last_post     = excluded.last_post
  where c.last_post <> excluded.last_post;
end
$$;
