-- Since when the probe for capabilities is unchanged, from one heartbeat to the next: a change begins the time anew. A
-- broker of the release before does not pass the probe on, so its heartbeats say nothing about it.
create or replace function capabilities_since(stored runtime_coverage, next runtime_coverage) returns timestamp
language sql immutable parallel safe
as $$
  select case
    when next.cap_probe is null then stored.cap_since
    when next.cap_probe is distinct from stored.cap_probe or next.cap_hook is distinct from stored.cap_hook
      then next.last_heartbeat
    else stored.cap_since
  end
$$;
