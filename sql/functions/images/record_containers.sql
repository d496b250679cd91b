-- Writes the containers of posted pods; returns how many rows it changed (docs/contract.md#images). Agents post every
-- pod each minute: a post that changes nothing is recognised by reading alone and takes no lock. Workloads that change
-- or that a pod has left are locked first, in the order of their keys, and then compared again, so that concurrent
-- posts queue without deadlock. Images, which workloads share, are written in one statement in the order of their
-- digests. The only other writer that locks these rows is the retention job, which skips locked ones. The lock timeout
-- keeps the inventory from delaying a post.
create or replace function record_containers(doc json) returns integer
language plpgsql
set lock_timeout = '2s'
as $$
declare
  moment    constant timestamp := now() at time zone 'utc';
  workloads bigint[];
  changed   integer := 0;
  rows      integer;
begin
  select array_agg(i.workload) || array_agg(o.workload) filter (where o.workload is not null) into workloads
  from posted_containers(doc) i
  left join workload_container w
    on w.pod_namespace = i.pod_namespace and w.workload_kind = i.workload_kind and w.workload_name = i.workload_name
   and w.container_name = i.container_name and w.image_digest = i.image_digest and w.cluster_id = 'primary'
  left join image m on m.digest = i.image_digest
  left join lateral rows_left_by_pod(i.pod_namespace, i.pod_name, i.container_name, i.workload_kind, i.workload_name,
                                     i.image_digest) o on true
  where i.image_digest is not null
        and (is_image_changed(m, i.repository, i.tags, i.digest_kind)
             or is_container_changed(w, i.container_kind, i.image_ref, i.security_context, i.pod_security, i.state,
                                     i.state_reason)
                and not is_outranked(w, i.pod_name, i.state, i.state_reason))
     or i.image_digest is null
        and waiting_reference(i.pod_namespace, i.workload_kind, i.workload_name, i.container_name,
                              i.image_ref) is not null
     or o.workload is not null;

  if workloads is null then
    return 0;
  end if;

  perform pg_advisory_xact_lock(k.workload) from (select distinct unnest(workloads) as workload order by 1) k;

  insert into image as m (digest, repository, tags, digest_kind, first_seen, last_seen)
  select s.digest, s.repository, s.tags, s.digest_kind, moment, moment
  from (select i.image_digest as digest,
               (array_agg(i.repository order by i.n) filter (where i.repository is not null))[1] as repository,
               union_tags('{}', array_agg(i.tags[1] order by i.n)) as tags,
               (array_agg(i.digest_kind order by digest_kind_rank(i.digest_kind) desc))[1] as digest_kind
        from posted_containers(doc) i
        where i.workload = any (workloads) and i.image_digest is not null
        group by i.image_digest) s
  left join image m on m.digest = s.digest
  where is_image_changed(m, s.repository, s.tags, s.digest_kind)
  order by s.digest
  on conflict (digest) do update set
    repository  = coalesce(m.repository, excluded.repository),
    tags        = union_tags(m.tags, excluded.tags),
    digest_kind = case when digest_kind_rank(excluded.digest_kind) > digest_kind_rank(m.digest_kind)
                  then excluded.digest_kind else m.digest_kind end,
    last_seen   = greatest(m.last_seen, excluded.last_seen)
  where is_image_changed(m, excluded.repository, excluded.tags, excluded.digest_kind);
  get diagnostics rows = row_count;
  changed := changed + rows;

  -- A pod runs one image in a container, in one workload: its other rows (all rows while it pulls) no longer name it.
  update workload_container w set last_pod_name = null
  from posted_containers(doc) i
  cross join lateral rows_left_by_pod(i.pod_namespace, i.pod_name, i.container_name, i.workload_kind, i.workload_name,
                                      i.image_digest) o
  where i.workload = any (workloads) and o.workload = any (workloads) and w.ctid = o.place;
  get diagnostics rows = row_count;
  changed := changed + rows;

  -- Where replicas differ the last one counts, those that run first.
  insert into workload_container as w (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
                                       image_digest,
                                       container_kind, image_ref, security_context, pod_security, last_pod_name, state,
                                       state_reason, first_seen, last_seen)
  select 'primary', s.pod_namespace, s.workload_kind, s.workload_name, s.container_name, s.image_digest,
         s.container_kind, s.image_ref, s.security_context, s.pod_security, s.pod_name, s.state, s.state_reason, moment,
         moment
  from (select distinct on (i.pod_namespace, i.workload_kind, i.workload_name, i.container_name, i.image_digest) i.*,
               w as stored
        from posted_containers(doc) i
        left join workload_container w
          on w.pod_namespace = i.pod_namespace and w.workload_kind = i.workload_kind
         and w.workload_name = i.workload_name and w.container_name = i.container_name
         and w.image_digest = i.image_digest and w.cluster_id = 'primary'
        where i.workload = any (workloads) and i.image_digest is not null
          and not is_outranked(w, i.pod_name, i.state, i.state_reason)
        order by i.pod_namespace, i.workload_kind, i.workload_name, i.container_name, i.image_digest,
                 is_running_state(i.state, i.state_reason) desc, i.n desc) s
  where is_container_changed(s.stored, s.container_kind, s.image_ref, s.security_context, s.pod_security, s.state,
                             s.state_reason)
  order by s.pod_namespace, s.workload_kind, s.workload_name, s.container_name, s.image_digest
  on conflict (pod_namespace, workload_kind, workload_name, container_name, image_digest, cluster_id) do update set
    container_kind   = excluded.container_kind,
    image_ref        = excluded.image_ref,
    security_context = excluded.security_context,
    pod_security     = excluded.pod_security,
    last_pod_name    = excluded.last_pod_name,
    state            = excluded.state,
    state_reason     = excluded.state_reason,
    last_seen        = greatest(w.last_seen, excluded.last_seen);
  get diagnostics rows = row_count;
  changed := changed + rows;

  -- An image that is being pulled again is still in use, although no row of it is updated.
  update workload_container w set ref_seen_at = moment
  from (select i.*, waiting_reference(i.pod_namespace, i.workload_kind, i.workload_name, i.container_name,
                                      i.image_ref) as digest
        from posted_containers(doc) i
        where i.workload = any (workloads) and i.image_digest is null) r
  where w.pod_namespace = r.pod_namespace and w.workload_kind = r.workload_kind and w.workload_name = r.workload_name
    and w.container_name = r.container_name and w.image_digest = r.digest and w.cluster_id = 'primary';
  get diagnostics rows = row_count;
  return changed + rows;
end
$$;
