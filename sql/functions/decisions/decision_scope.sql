-- The scope of a decision as answers show it.
create or replace function decision_scope(d vuln_decision) returns json
language sql stable parallel safe
as $$
  select case
           when d.scope_rank = 0 then json_build_object(
             'type', 'workload', 'namespace', d.pod_namespace, 'kind', d.workload_kind, 'name', d.workload_name)
           when d.scope_rank = 2 then json_build_object('type', 'namespace', 'namespace', d.pod_namespace)
           when d.image_arch is not null then json_build_object(
             'type', 'image', 'digest', d.image_digest, 'arch', d.image_arch)
           when d.image_digest is not null then json_build_object('type', 'image', 'digest', d.image_digest)
           when d.repository is not null then json_build_object('type', 'repository', 'repository', d.repository)
           else json_build_object('type', 'all') end
$$;
