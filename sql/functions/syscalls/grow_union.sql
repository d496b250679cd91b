-- Adds names and architectures to the set of a workload; returns how many found no room. Stored ones stay, then the
-- first by bytes are taken. Names that no syscall has (`isSyscallName` in lib/seccomp/names.ts) have little room, so
-- that a container that tries many numbers leaves room for the others. If nothing is added, nothing is written and no
-- row is locked; no names create no row.
create or replace function grow_union(of_namespace text, of_kind text, of_workload text, names text[],
                                      archs text[]) returns integer
language plpgsql
as $$
declare
  max_names     constant integer := 1024;
  max_others    constant integer := 256;
  max_archs     constant integer := 16;
  -- Of the joined names. All names of a kernel take 6 KiB; hashing this many takes 3 ms.
  max_bytes     constant integer := 16384;
  other_bytes   constant integer := 4096;
  syscall_name  constant text    := '^([a-z][a-z0-9_]{0,63}|_llseek|_newselect|_sysctl)$';
  stored        workload_syscalls;
  is_locked     boolean := false;
  stored_names  text[];
  others        text[];
  grown_names   text[];
  grown_archs   text[];
  left_out      integer;
  joined        text;
begin
  if names = '{}' then
    return 0;
  end if;

  select * into stored from workload_syscalls w
  where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload;
  loop
    stored_names := string_to_array(stored.syscalls, ',');
    others      := bounded_union(array(select n from unnest(stored_names) n where n !~ syscall_name),
                                 array(select n from unnest(names) n where n !~ syscall_name), max_others, other_bytes);
    grown_names := bounded_union(stored_names, array(select n from unnest(names) n where n ~ syscall_name) || others,
                                 max_names, max_bytes);
    grown_archs := bounded_union(stored.arches, archs, max_archs, max_bytes);
    joined      := array_to_string(grown_names, ',');
    left_out    := (select count(*) from (select unnest(names) except select unnest(grown_names)) n)
                 + (select count(*) from (select unnest(archs) except select unnest(grown_archs)) a);
    if joined = stored.syscalls and grown_archs = stored.arches then
      return left_out;
    end if;

    if is_locked then
      update workload_syscalls w set
        syscalls      = joined,
        arches        = grown_archs,
        hash          = union_hash(joined, grown_archs),
        syscall_count = cardinality(grown_names),
        updated_at    = greatest(clock_timestamp() at time zone 'utc', stored.updated_at + interval '1 microsecond')
      where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload;
      return left_out;
    end if;

    if stored.pod_namespace is null then
      insert into workload_syscalls
      values (of_namespace, of_kind, of_workload, joined, grown_archs, union_hash(joined, grown_archs),
              cardinality(grown_names),
              clock_timestamp() at time zone 'utc')
      on conflict do nothing;
      if found then
        return left_out;
      end if;
    end if;

    -- Rows are never deleted, and the row lock keeps other writers out from here on.
    select * into strict stored from workload_syscalls w
    where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload
    for update;
    is_locked := true;
  end loop;
end
$$;
