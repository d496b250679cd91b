-- The fingerprint of an observed set as rendered: sorted names joined with commas, sorted architectures, and the
-- logging action (docs/contract.md#seccomp-profiles).
create or replace function union_hash(syscalls text, arches text[]) returns text
language sql immutable parallel safe
as $$
  select fnv1a_64(syscalls || E'\x1e' || array_to_string(arches, ',') || E'\x1e' || 'SCMP_ACT_LOG')
$$;
