-- Whether a container runs its image: its state is a running one, and it was reported within the window or by a pod
-- that is alive.
create or replace function is_running(w workload_container, window_secs integer) returns boolean
language sql stable parallel safe
as $$
  select is_running_state(w.state, w.state_reason)
     and (w.last_seen >= now() at time zone 'utc' - make_interval(secs => window_secs)
          or w.last_pod_name is not null and is_pod_alive(w.pod_namespace, w.last_pod_name))
$$;
