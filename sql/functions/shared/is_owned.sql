-- Whether a pod belongs to a workload that its post names. A kind without a name, or a name without a kind, is none:
-- the pod is then a workload of its own, of the kind `Pod`.
create or replace function is_owned(kind text, name text) returns boolean
language sql immutable parallel safe
as $$
  select coalesce(trimmed(kind), '') <> '' and coalesce(trimmed(name), '') <> ''
$$;
