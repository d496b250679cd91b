-- Whether a report of a container differs from its row, or the row is due for a refresh. Another pod alone is no
-- difference. A row of nulls stands for no row.
create or replace function is_container_changed(w workload_container, container_kind text, image_ref text,
                                                security_context jsonb,
                                                pod_security jsonb, state text, state_reason text) returns boolean
language sql stable parallel safe
as $$
  select w.image_digest is null
      or w.last_seen < now() at time zone 'utc' - interval '300 seconds'
      or w.container_kind <> container_kind
      or w.image_ref <> image_ref
      or w.state is distinct from state
      or w.state_reason is distinct from state_reason
      or w.security_context <> security_context
      or w.pod_security <> pod_security
$$;
