-- Whether the row of a container tells of another pod, which lives and runs it, and a report of this pod does not: a
-- replica that waits or has ended must not hide one that runs. A row of nulls stands for no row.
create or replace function is_outranked(w workload_container, pod text, state text, state_reason text) returns boolean
language sql stable parallel safe
as $$
  select coalesce(not is_running_state(state, state_reason) and is_running_state(w.state, w.state_reason)
                  and w.last_pod_name <> pod and is_pod_alive(w.pod_namespace, w.last_pod_name), false)
$$;
