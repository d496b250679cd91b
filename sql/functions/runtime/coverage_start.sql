-- Since when a container is watched without a gap, from one heartbeat to the next: after a gap, since the next
-- heartbeat, or since tracking restarted if that was reported in time and the probe was attached.
create or replace function coverage_start(stored runtime_coverage, next runtime_coverage) returns timestamp
language sql immutable parallel safe
as $$
  select case
    when coverage_gap(stored, next) is null then stored.covered_since
    when next.tracking_since > stored.last_heartbeat
      and coalesce(next.probe_attached_at <= stored.last_heartbeat, true)
      and next.last_heartbeat <= next.tracking_since + make_interval(secs => 3 * next.heartbeat_secs + 60)
          then next.covered_since
    else next.last_heartbeat
  end
$$;
