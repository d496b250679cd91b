-- Whether a report of a pod that waits or has ended is left out because another living pod runs the image of the row:
-- the one that the row tells of, or else any. A row of nulls stands for no row.
create or replace function is_outranked(w workload_container, pod text, state text, state_reason text) returns boolean
language sql stable
as $$
  select coalesce(not is_running_state(state, state_reason) and is_running_state(w.state, w.state_reason)
                  and (w.last_pod_name <> pod and is_pod_alive(w.pod_namespace, w.last_pod_name)
                       or runs_in_other_pod(w, pod)), false)
$$;
