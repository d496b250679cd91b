-- The digest of the newest row of a container with this image reference if it is time to update `ref_seen_at`; else
-- null.
create or replace function waiting_reference(namespace text, kind text, name text, container text,
                                             reference text) returns text
language plpgsql stable parallel safe
as $$
declare
  newest record;
begin
  select w.image_digest, w.ref_seen_at into newest
  from workload_container w
  where w.pod_namespace = namespace and w.workload_kind = kind and w.workload_name = name
        and w.container_name = container
    and w.cluster_id = 'primary' and w.image_ref = reference
  order by w.last_seen desc, w.image_digest
  limit 1;
  return case when newest.ref_seen_at is null or newest.ref_seen_at < now() at time zone 'utc' - interval '300 seconds'
         then newest.image_digest end;
end
$$;
