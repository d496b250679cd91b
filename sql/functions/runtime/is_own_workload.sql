-- Whether a container counts as its pod's own: it has no other workload, or none is known yet.
create or replace function is_own_workload(container runtime_coverage) returns boolean
language sql immutable parallel safe
as $$ select container.workload_kind = 'Pod' and container.workload_name = container.pod_name $$;
