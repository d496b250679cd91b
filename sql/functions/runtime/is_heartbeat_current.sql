-- Whether the next heartbeat of a container is not late yet (docs/contract.md#runtime-coverage).
create or replace function is_heartbeat_current(last_heartbeat timestamp, heartbeat_secs bigint) returns boolean
language sql stable parallel safe
as $$ select last_heartbeat >= now() at time zone 'utc' - make_interval(secs => 3 * heartbeat_secs + 60) $$;
