-- Writes the files that ran in containers, each once in the document; returns how many rows were new or changed
-- (docs/contract.md#executables). Arrays after `owners` refer to owners and pods by position. Agents repeat every file
-- each hour: unchanged rows are recognised by reading alone and take no lock. Rows are written in the order of their
-- keys, so that concurrent posts queue without deadlock, and rows that another post has written meanwhile are compared
-- again. All rows of a container and kind are read and hashed at once, five times as fast as looking up each
-- nine-column key; if a container has several times as many rows as were posted, the remaining ones are looked up. The
-- planner settings enforce this whatever it estimates of an empty table. No time is later than now. The images of
-- files that were not known before are noted, so that the job links these to packages (docs/contract.md#in-use).
create or replace function store_executables(
  namespaces text[], workload_kinds text[], workload_names text[], containers text[], images text[], pods text[],
  owners integer[], kinds text[], paths text[], are_complete boolean[], sources text[], origins text[],
  seen_in integer[],
  firsts timestamp[], lasts timestamp[]) returns integer
language plpgsql
set enable_hashjoin = on
set enable_nestloop = off
as $$
declare
  most constant integer := 4;
  moment constant timestamp := clock_timestamp() at time zone 'utc';
  written integer;
  places integer[];
begin
  -- Comparing the place of an owner is several times as fast as comparing its five texts.
  select array_agg(p.place order by p.owner)
  into places
  from (select o.owner, dense_rank() over (
                 order by namespaces[o.owner] collate "C", workload_kinds[o.owner] collate "C",
                   workload_names[o.owner] collate "C", containers[o.owner] collate "C",
                   images[o.owner] collate "C") as place
        from generate_subscripts(namespaces, 1) o(owner)) p;
  with sighting as materialized (
    select u.owner, namespaces[u.owner] as pod_namespace, workload_kinds[u.owner] as workload_kind,
           workload_names[u.owner] as workload_name,
           containers[u.owner] as container_name, images[u.owner] as image_digest, u.kind, u.path,
           left(u.path, 256) as path_start,
           sha256(convert_to(u.path, 'UTF8')) as path_hash, u.path_complete, u.source, u.origin,
           pods[u.pod] as last_pod_name,
           least(u.first_seen, moment) as first_seen, least(u.last_seen, moment) as last_seen
    from unnest(owners, kinds, paths, are_complete, sources, origins, seen_in, firsts, lasts)
      as u(owner, kind, path, path_complete, source, origin, pod, first_seen, last_seen)
  ),
  asked as materialized (
    select i.owner, i.kind, min(i.path_start) as first_start, max(i.path_start) as last_start,
           most * count(*) as max_rows
    from sighting i
    group by i.owner, i.kind),
  stored as materialized (
    select a.owner, a.kind, a.max_rows, r.*
    from asked a
    cross join lateral (
      select r.path_hash, r.path_complete, r.source, r.origin, r.first_seen, r.last_seen
      from runtime_executable r
      where r.pod_namespace = namespaces[a.owner] and r.workload_kind = workload_kinds[a.owner]
            and r.workload_name = workload_names[a.owner]
        and r.container_name = containers[a.owner] and r.image_digest = images[a.owner] and r.kind = a.kind
        and r.path_start between a.first_start and a.last_start and r.cluster_id = 'primary'
      order by r.path_start, r.path_hash
      limit a.max_rows) r),
  cut as materialized (
    select s.owner, s.kind from stored s group by s.owner, s.kind, s.max_rows having count(*) = s.max_rows),
  changed as materialized (
    select i.*, s.path_complete as was_complete
    from sighting i
    left join stored h on h.owner = i.owner and h.kind = i.kind and h.path_hash = i.path_hash
    left join cut c on c.owner = i.owner and c.kind = i.kind
    left join lateral (
      select h.path_complete, h.source, h.origin, h.first_seen, h.last_seen where h.path_hash is not null
      union all
      select r.path_complete, r.source, r.origin, r.first_seen, r.last_seen
      from runtime_executable r
      where h.path_hash is null and c.owner is not null
        and r.pod_namespace = i.pod_namespace and r.workload_kind = i.workload_kind
        and r.workload_name = i.workload_name
        and r.container_name = i.container_name and r.image_digest = i.image_digest and r.kind = i.kind
        and r.path_start = i.path_start and r.path_hash = i.path_hash and r.cluster_id = 'primary' offset 0) s on true
    where is_executable_changed(s.path_complete, s.source, s.origin, s.first_seen, s.last_seen,
                             i.path_complete, i.source, i.origin, i.first_seen, i.last_seen)),
  noted as (
    insert into use_news (image_digest, is_judged)
    select distinct i.image_digest, false
    from changed i
    where i.image_digest <> '' and i.path_complete and i.was_complete is not true)
  insert into runtime_executable as e (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
                                       image_digest, kind, path,
                                       path_hash, path_complete, source, origin, last_pod_name, first_seen, last_seen)
  select 'primary', i.pod_namespace, i.workload_kind, i.workload_name, i.container_name, i.image_digest, i.kind, i.path,
         i.path_hash, i.path_complete, i.source, i.origin, i.last_pod_name, i.first_seen, i.last_seen
  from changed i
  order by places[i.owner], i.kind collate "C", i.path_start collate "C", i.path_hash
  on conflict (pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path_start, path_hash,
               cluster_id) do update set
    path_complete = e.path_complete or excluded.path_complete,
    source        = case when excluded.source = 'ebpf' then excluded.source else e.source end,
    origin        = case when origin_rank(excluded.origin) > origin_rank(e.origin) then excluded.origin
      else e.origin end,
    last_pod_name = case when excluded.last_seen > e.last_seen then excluded.last_pod_name else e.last_pod_name end,
    first_seen    = least(e.first_seen, excluded.first_seen),
    last_seen     = greatest(e.last_seen, excluded.last_seen)
  where is_executable_changed(e.path_complete, e.source, e.origin, e.first_seen, e.last_seen,
                           excluded.path_complete, excluded.source, excluded.origin, excluded.first_seen,
                           excluded.last_seen);
  get diagnostics written = row_count;
  return written;
end
$$;
