-- Stores the denials of a node since its last drain, each pod, syscall and action once in the document, and updates the
-- node's row (docs/contract.md#denials). Returns the number of denials per workload and action; those without a known
-- workload are left out and counted once it is known.
-- Counts are added, so a retry must not be added again: if the node's row has the same `post` id, nothing is written
-- and the answer is the same. That row is locked first, so a retry waits for the first attempt; then denials are
-- written in the order of their keys, as in every post.
create or replace function store_denials(document json)
returns table (workload_namespace text, workload_kind text, workload_name text, action text, denials float8)
language plpgsql
as $$
#variable_conflict use_column
declare
  max_count constant bigint := 1000000000000;
  kept_posts constant integer := 16;
  node constant text := document ->> 'node';
  post constant uuid := document ->> 'post';
  entries constant json := document -> 'denials';
  moment timestamp;
begin
  insert into seccomp_denial_node as n (node_name, capturing, interval_seconds, posts, updated_at)
  values (node, (document ->> 'capturing')::boolean, (document ->> 'interval_seconds')::bigint, array[post],
          clock_timestamp() at time zone 'utc')
  on conflict (node_name) do update set
    capturing        = excluded.capturing,
    interval_seconds = excluded.interval_seconds,
    posts            = (excluded.posts || n.posts)[1:kept_posts],
    updated_at       = clock_timestamp() at time zone 'utc'
  where post <> all (n.posts);

  if found then
    -- No time is later than now; a missing one is now.
    moment := clock_timestamp() at time zone 'utc';
    insert into seccomp_denial as d (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, node_name, syscall,
                                     syscall_nr, action,
                                     action_raw, arch, count, uncounted, first_seen, last_seen)
    select i.pod_uid, i.pod_name, i.pod_namespace, w.kind, w.name, node, i.syscall, i.syscall_nr, i.action,
           i.action_raw, i.arch, i.count, case when w.kind is null then i.count else 0 end, least(i.first_seen, moment),
           least(i.last_seen, moment)
    from json_to_recordset(entries) as i(
      pod_uid text, pod_name text, pod_namespace text, syscall text, syscall_nr bigint, action text, action_raw bigint,
      arch text,
      count bigint, first_seen timestamp, last_seen timestamp)
    left join lateral denial_workload(i.pod_name, i.pod_namespace) w on true
    order by i.pod_uid collate "C", i.syscall collate "C", i.action collate "C"
    on conflict (pod_uid, syscall, action) do update set
      workload_kind = coalesce(excluded.workload_kind, d.workload_kind),
      workload_name = coalesce(excluded.workload_name, d.workload_name),
      node_name     = excluded.node_name,
      syscall_nr    = coalesce(excluded.syscall_nr, d.syscall_nr),
      action_raw    = coalesce(excluded.action_raw, d.action_raw),
      arch          = coalesce(excluded.arch, d.arch),
      count         = least(d.count + excluded.count, max_count),
      uncounted     = case
        when coalesce(excluded.workload_kind, d.workload_kind) is null
          or coalesce(excluded.workload_name, d.workload_name) is null
        then least(d.uncounted + excluded.count, max_count) else d.uncounted end,
      first_seen    = least(d.first_seen, excluded.first_seen),
      last_seen     = greatest(d.last_seen, excluded.last_seen);
  end if;

  -- From the stored rows, so that a retry gets the same answer. The fence (`offset 0`) forces a lookup per row.
  return query
  select d.pod_namespace, d.workload_kind, d.workload_name, d.action, sum(i.count)::float8
  from json_to_recordset(entries) as i(pod_uid text, syscall text, action text, count bigint)
  cross join lateral (
    select * from seccomp_denial s where s.pod_uid = i.pod_uid and s.syscall = i.syscall
           and s.action = i.action offset 0) d
  where d.workload_kind is not null and d.workload_name is not null
  group by d.pod_namespace, d.workload_kind, d.workload_name, d.action;
end
$$;
