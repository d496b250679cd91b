-- Why a container was not watched without interruption between two heartbeats, the first reason that applies; null if
-- it was. The first heartbeat says how late the next may be. Tracking that began after the first heartbeat was
-- restarted with the agent or its probe.
create or replace function coverage_gap(stored runtime_coverage, next runtime_coverage) returns text
language sql immutable parallel safe
as $$
  select case
    when next.last_heartbeat > stored.last_heartbeat + make_interval(secs => 3 * stored.heartbeat_secs + 60)
      then 'late_heartbeat'
    when next.probe_attached_at > stored.last_heartbeat or next.tracking_since > stored.last_heartbeat
      then 'probe_restart'
    when next.mode <> stored.mode or next.exec_probe <> stored.exec_probe or next.lib_probe <> stored.lib_probe
      then 'probe_change'
  end
$$;
