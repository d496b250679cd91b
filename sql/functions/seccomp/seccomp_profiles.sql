-- All workloads with observed syscalls and the fields of GET /seccomp/profiles except denials
-- (docs/contract.md#seccomp-profiles). `lib/seccomp/profile.ts` reads the same for one workload; a test holds that both
-- agree. Here all are read table by table. Names are returned only if the resource allows others than were observed.
create or replace function seccomp_profiles(profile_dir text, stale_secs integer)
returns table (
  namespace text, kind text, name text, hash text, syscall_count float8, arches json, updated_at text,
  worst integer, pods integer, incomplete integer, names json, ranks json,
  cr_count integer, cr_name text, cr_action text, cr_hash text, cr_syscall_count float8, cr_architectures json,
  cr_updated_at text,
  status_ready float8, status_total float8, status_state text, observed text, allowed text,
  live integer, present integer, ready integer)
language sql stable
set enable_seqscan = on
set enable_bitmapscan = on
set enable_hashjoin = on
-- A plan made while a table was empty must not read it once per row of another.
set enable_nestloop = off
set plan_cache_mode = auto
set work_mem = '16MB'
as $$
  with listed as materialized (
    select row_number() over (order by w.pod_namespace, w.workload_kind, w.workload_name) as n,
           w.pod_namespace, w.workload_kind, w.workload_name
    from workload_syscalls w
    -- After a reset the set may still be empty.
    where w.syscall_count > 0 or w.reset_at is null),
  awaited as materialized (
    select distinct u.pod_name, c.pod_namespace
    from unattributed_syscalls u
    join syscall_contribution c on c.pod_name = u.pod_name and u.pod_namespace in ('', c.pod_namespace)
    where not u.is_ambiguous),
  capture as materialized (
    select c.n, max(c.rank) as worst, count(*)::integer as pods,
           (count(*) filter (where c.rank > 0))::integer as incomplete,
           (array_agg(c.pod_name order by c.rank desc, c.pod_name))[1:20] as names,
           (array_agg(c.rank order by c.rank desc, c.pod_name))[1:20] as ranks
    from (select l.n, s.pod_name, contribution_rank(s, u.pod_name is not null) as rank
          from listed l
          join syscall_contribution s
            on s.pod_namespace = l.pod_namespace and s.workload_kind = l.workload_kind
               and s.workload_name = l.workload_name
          left join awaited u on u.pod_name = s.pod_name and u.pod_namespace = s.pod_namespace) c
    where c.rank is not null
    group by c.n),
  resource as materialized (
    select distinct on (l.n) l.n, c.namespace, c.name, c.hash, count(*) over (partition by l.n)::integer as count
    from listed l
    join seccomp_cr c on c.namespace = l.pod_namespace and c.workload_kind = l.workload_kind
      and c.workload_name = l.workload_name
    order by l.n, c.updated_at desc, c.name),
  live as materialized (
    select s.file_set_id, count(*) as nodes
    from seccomp_node s
    where stale_secs = 0 or s.updated_at >= now() at time zone 'utc' - make_interval(secs => stale_secs)
    group by s.file_set_id),
  placed as materialized (
    select r.n, sum(s.nodes)::integer as present, (sum(s.nodes)
                                                   filter (where f.hash = r.hash and r.hash <> ''))::integer as ready
    from resource r
    join seccomp_file f on f.path = profile_dir || '/' || r.namespace || '/' || r.name || '.json'
    join live s on s.file_set_id = f.file_set_id
    group by r.n)
  select w.pod_namespace, w.workload_kind, w.workload_name, w.hash, w.syscall_count::float8, to_json(w.arches),
         w.updated_at::text,
         c.worst, coalesce(c.pods, 0), coalesce(c.incomplete, 0), to_json(c.names), to_json(c.ranks),
         coalesce(r.count, 0), cr.name, cr.default_action, cr.hash, cr.syscall_count::float8, to_json(cr.architectures),
         cr.updated_at::text,
         cr.ready::float8, cr.total::float8, cr.state,
         case when cr.syscalls <> w.syscalls then w.syscalls end, case when cr.syscalls <> w.syscalls
           then cr.syscalls end,
         (select coalesce(sum(s.nodes), 0)::integer from live s), coalesce(f.present, 0), coalesce(f.ready, 0)
  from listed l
  join workload_syscalls w
    on w.pod_namespace = l.pod_namespace and w.workload_kind = l.workload_kind and w.workload_name = l.workload_name
  left join capture c on c.n = l.n
  left join resource r on r.n = l.n
  left join seccomp_cr cr on cr.namespace = r.namespace and cr.name = r.name
  left join placed f on f.n = l.n
  order by l.n
$$;
