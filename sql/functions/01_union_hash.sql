-- The fingerprint of an observed set as it is rendered: names sorted and joined with commas, architectures sorted, and the action that logs
-- (interop-profiling 1.4).
create or replace function union_hash(syscalls text, arches text[]) returns text
language sql immutable parallel safe
as $$
  select fnv1a_64(syscalls || E'\x1e' || array_to_string(arches, ',') || E'\x1e' || 'SCMP_ACT_LOG')
$$;
