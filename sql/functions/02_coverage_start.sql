-- Since when a container is watched without a gap by a heartbeat and the next: after a gap since the next one, or since tracking began anew, as far
-- as that is told in time and by a probe that was there.
create or replace function coverage_start(stored runtime_coverage, next runtime_coverage) returns timestamp
language sql immutable parallel safe
as $$
  select case
    when coverage_gap(stored, next) is null then stored.covered_since
    when next.tracking_since > stored.last_heartbeat
      and coalesce(next.probe_attached_at <= stored.last_heartbeat, true)
      and next.last_heartbeat <= next.tracking_since + make_interval(secs => 3 * next.heartbeat_secs + 60) then next.covered_since
    else next.last_heartbeat
  end
$$;
