-- Stores heartbeats of containers; returns how many rows were new or changed (docs/contract.md#runtime-coverage).
-- Several heartbeats of one container are applied in the order of their times, in rounds: the first of each container,
-- then the second, and so on. Heartbeats that are not newer than the stored one, or whose container has ended, are
-- recognised by reading alone and take no lock; the others lock their rows in the order of the keys and are compared
-- again. No heartbeat is later than now, and no tracking begins after its heartbeat. Start and mode of tracking come
-- from the first heartbeat, but a later one may say that the probe found the container running. A workload or image
-- that was unknown takes the container over, losses included. Brokers of the release before send no `cap_probe`: what
-- is stored of it then stays.
create or replace function store_heartbeats(doc json) returns integer
language plpgsql
as $$
declare
  max_count constant bigint := 1000000000000;
  moment constant timestamp := clock_timestamp() at time zone 'utc';
  turns json[];
  turn json;
  changed text[];
  written text[] := '{}';
begin
  select array_agg(t.heartbeats order by t.turn) into turns
  from (
    select n.turn, json_agg(n order by n.container_id collate "C") as heartbeats
    from (
      select i.*, row_number() over (partition by i.container_id order by i.heard_at) as turn
      from (
        -- Times in the future become now, but stay in their order.
        select i.*, least(i.heartbeat_at, moment - interval '1 microsecond'
                            * (row_number() over (partition by i.container_id
                                                  order by i.heartbeat_at desc) - 1)) as heard_at
        from json_to_recordset(doc) as i(
          container_id text, pod_namespace text, workload_kind text, workload_name text, container_name text,
          image_digest text, pod_name text,
          node_name text, mode text, exec_probe boolean, lib_probe boolean, start_mode text, tracking_since timestamp,
          probe_attached_at timestamp, heartbeat_at timestamp, heartbeat_secs integer, events_dropped bigint,
          unsent bigint, incomplete boolean,
          ended boolean, cap_probe boolean, cap_hook text)) i
      -- The fence (`offset 0`) forces a lookup per row, whatever the planner estimates of an empty table.
      left join lateral (
        select r.ended, r.last_heartbeat
        from runtime_coverage r
        where r.container_id = i.container_id and r.cluster_id = 'primary' offset 0) s on true
      where s.last_heartbeat is null or not s.ended and i.heard_at > s.last_heartbeat) n
    group by n.turn) t;

  foreach turn in array coalesce(turns, '{}') loop
    with stored as (
      insert into runtime_coverage as c (cluster_id, container_id, pod_namespace, workload_kind, workload_name,
                                         container_name, image_digest, pod_name,
                                         node_name, mode, exec_probe, lib_probe, start_mode, tracking_since,
                                         covered_since, probe_attached_at,
                                         last_heartbeat, heartbeat_secs, gaps, last_gap, events_dropped, last_drop_at,
                                         unsent, incomplete, ended, cap_probe, cap_hook, cap_since)
      select 'primary', i.container_id, i.pod_namespace, i.workload_kind, i.workload_name, i.container_name,
             i.image_digest, i.pod_name,
             i.node_name, i.mode, i.exec_probe, i.lib_probe, i.start_mode, least(i.tracking_since, i.heard_at),
             case when i.exec_probe then least(i.tracking_since, i.heard_at) else i.heard_at end,
             case when i.probe_attached_at is not null then least(i.probe_attached_at, moment) end,
             i.heard_at, i.heartbeat_secs, 0, null, i.events_dropped, case when i.events_dropped > 0
               then i.heard_at end,
             i.unsent, i.incomplete, i.ended, i.cap_probe, i.cap_hook,
             case when i.cap_probe is not null then least(i.tracking_since, i.heard_at) end
      from json_to_recordset(turn) as i(
        container_id text, pod_namespace text, workload_kind text, workload_name text, container_name text,
        image_digest text, pod_name text,
        node_name text, mode text, exec_probe boolean, lib_probe boolean, start_mode text, tracking_since timestamp,
        probe_attached_at timestamp,
        heard_at timestamp, heartbeat_secs integer, events_dropped bigint, unsent bigint, incomplete boolean,
        ended boolean, cap_probe boolean, cap_hook text)
      order by i.container_id collate "C"
      on conflict (container_id, cluster_id) do update set
        workload_kind     = case when is_own_workload(c) and not is_own_workload(excluded) then excluded.workload_kind
          else c.workload_kind end,
        workload_name     = case when is_own_workload(c) and not is_own_workload(excluded) then excluded.workload_name
          else c.workload_name end,
        image_digest      = case when c.image_digest = '' then excluded.image_digest else c.image_digest end,
        mode              = excluded.mode,
        exec_probe        = excluded.exec_probe,
        lib_probe         = excluded.lib_probe,
        start_mode        = case when c.start_mode = 'start' then excluded.start_mode else c.start_mode end,
        covered_since     = coverage_start(c, excluded),
        probe_attached_at = coalesce(excluded.probe_attached_at, c.probe_attached_at),
        last_heartbeat    = excluded.last_heartbeat,
        heartbeat_secs    = excluded.heartbeat_secs,
        gaps              = case when coverage_gap(c, excluded) is null then c.gaps else c.gaps + 1 end,
        last_gap          = coalesce(coverage_gap(c, excluded), c.last_gap),
        events_dropped    = least(c.events_dropped + excluded.events_dropped, max_count),
        last_drop_at      = coalesce(excluded.last_drop_at, c.last_drop_at),
        unsent            = excluded.unsent,
        incomplete        = c.incomplete or excluded.incomplete,
        ended             = excluded.ended,
        cap_probe         = coalesce(excluded.cap_probe, c.cap_probe),
        cap_hook          = case when excluded.cap_probe is null then c.cap_hook else excluded.cap_hook end,
        cap_since         = capabilities_since(c, excluded)
      where not c.ended and excluded.last_heartbeat > c.last_heartbeat
      returning c.container_id)
    select coalesce(array_agg(s.container_id), '{}') into changed from stored s;
    written := written || changed;
  end loop;
  return (select count(distinct w.id) from unnest(written) w(id));
end
$$;
