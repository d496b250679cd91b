-- Stores a computed profile of a workload: a new version if its hash is not that of the newest one, at most `most` of
-- them, and the row of the list. Returns the revision, and whether it is new; null if another writer stored another
-- state as that revision, in which case nothing is written (docs/contract.md#workload-profiles). The next revision is
-- also above that of the list, whose versions may be gone.
create or replace function store_profile_version(namespace text, kind text, workload text, hash text, hashes json,
                                                 stored_posture json, stored_snapshot json, status text,
                                                 listed_summary json, drifts boolean, fills boolean, most integer,
                                                 out stored_revision integer, out is_new boolean)
language plpgsql
as $$
declare
  moment constant timestamp := now() at time zone 'utc';
  newest record;
  listed integer;
begin
  select v.revision, v.content_hash, v.created_at into newest
  from workload_profile_version v
  where v.pod_namespace = namespace and v.workload_kind = kind and v.workload_name = workload
    and v.cluster_id = 'primary'
  order by v.revision desc
  limit 1;
  is_new := newest.content_hash is distinct from hash;

  if is_new then
    select p.revision into listed
    from workload_profile p
    where p.pod_namespace = namespace and p.workload_kind = kind and p.workload_name = workload
      and p.cluster_id = 'primary';
    stored_revision := greatest(newest.revision, listed, 0) + 1;

    insert into workload_profile_version
    values ('primary', namespace, kind, workload, stored_revision, hash, hashes, stored_posture, stored_snapshot,
            moment)
    on conflict do nothing;
    if found then
      newest.created_at := moment;
      delete from workload_profile_version v
      where v.pod_namespace = namespace and v.workload_kind = kind and v.workload_name = workload
        and v.revision <= stored_revision - most and v.cluster_id = 'primary';
    else
      is_new := false;
      select v.revision, v.content_hash, v.created_at into newest
      from workload_profile_version v
      where v.pod_namespace = namespace and v.workload_kind = kind and v.workload_name = workload
        and v.revision = stored_revision and v.cluster_id = 'primary';
      if newest.content_hash is distinct from hash then
        stored_revision := null;
        return;
      end if;
    end if;
  else
    stored_revision := newest.revision;
  end if;

  insert into workload_profile as p
  values ('primary', namespace, kind, workload, stored_revision, hash, status, listed_summary, drifts, fills, moment,
          newest.created_at)
  on conflict (pod_namespace, workload_kind, workload_name, cluster_id) do update set
    revision        = excluded.revision,
    content_hash    = excluded.content_hash,
    posture_status  = excluded.posture_status,
    summary         = excluded.summary,
    has_drift       = excluded.has_drift,
    is_full         = excluded.is_full,
    computed_at     = excluded.computed_at,
    last_changed_at = case when p.content_hash = excluded.content_hash then p.last_changed_at
                      else excluded.last_changed_at end
  where p.revision <= excluded.revision;

  delete from workload_profile_failure f
  where f.pod_namespace = namespace and f.workload_kind = kind and f.workload_name = workload
    and f.cluster_id = 'primary';
end
$$;
