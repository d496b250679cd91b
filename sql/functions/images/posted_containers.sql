-- The containers of posted pods, `n` in the order of arrival. `workload` is the key of the lock under which a workload
-- is changed.
create or replace function posted_containers(doc json)
returns table (n bigint, workload bigint, pod_namespace text, workload_kind text, workload_name text, pod_name text,
               container_name text, container_kind text, image_ref text, image_digest text, digest_kind text,
               repository text,
               tags text[], security_context jsonb, pod_security jsonb, state text, state_reason text)
language sql stable parallel safe
as $$
  select c.n, workload_lock(c.pod_namespace, c.workload_kind, c.workload_name),
         c.pod_namespace, c.workload_kind, c.workload_name, c.pod_name, c.container_name, c.container_kind, c.image_ref,
         c.image_digest,
         c.digest_kind, c.repository, c.tags, c.security_context, c.pod_security, c.state, c.state_reason
  from rows from (json_to_recordset(doc) as (
         pod_namespace text, workload_kind text, workload_name text, pod_name text, container_name text,
         container_kind text,
         image_ref text, image_digest text, digest_kind text, repository text, tags text[], security_context jsonb,
         pod_security jsonb, state text, state_reason text))
       with ordinality c(pod_namespace, workload_kind, workload_name, pod_name, container_name, container_kind,
                         image_ref,
                         image_digest, digest_kind, repository, tags, security_context, pod_security, state,
                         state_reason, n)
$$;
