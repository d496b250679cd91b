-- Records when the names of a set were first and last seen, and in which images of the sending pods. `old_names` are
-- the previous names of the set, whose times are unknown. Updates of less than five minutes are not written. The caller
-- holds the lock of the workload.
create or replace function record_syscall_times(of_namespace text, of_kind text, of_workload text, old_names text[],
                                                new_names text[], sent json, moment timestamp)
returns void
language plpgsql
as $$
declare
  step       constant interval := '5 minutes';
  max_images constant integer := 8;
  seen       workload_syscalls_seen;
  stored        workload_syscalls_seen;
  image      record;
  place      integer;
begin
  select * into stored from workload_syscalls_seen s
  where s.pod_namespace = of_namespace and s.workload_kind = of_kind and s.workload_name = of_workload;
  seen := stored;
  if seen.names is null then
    seen := row(of_namespace, of_kind, of_workload, old_names,
                array_fill(null::timestamp, array[cardinality(old_names)]),
                array_fill(null::timestamp, array[cardinality(old_names)]),
                array_fill(0::bigint, array[cardinality(old_names)]), '{}', '{}');
  end if;

  for image in
    select d.digest, max(least(s.sent_at, moment)) as seen_at
    from json_to_recordset(sent) as s(syscalls text[], image_digests text[], sent_at timestamp)
    cross join lateral unnest(s.image_digests) d(digest)
    where s.syscalls <> '{}'
    group by d.digest
    order by 2, 1
  loop
    place := array_position(seen.image_digests, image.digest);
    if place is null then
      place := cardinality(seen.image_digests) + 1;
      if place > max_images then
        -- The least recently seen image makes room.
        select a.place into place from unnest(seen.image_seen) with ordinality a(at, place) order by a.at, a.place
               limit 1;
        seen.images := array(select i.mask & ~(1::bigint << (place - 1))
                             from unnest(seen.images) with ordinality i(mask, n) order by i.n);
      end if;
      seen.image_digests[place] := image.digest;
      seen.image_seen[place] := image.seen_at;
    elsif image.seen_at > seen.image_seen[place] + step then
      seen.image_seen[place] := image.seen_at;
    end if;
  end loop;

  with old as (
    select * from unnest(seen.names, seen.first_seen, seen.last_seen, seen.images) o(name, first_seen, last_seen, mask)
  ), new as (
    select trimmed(n.name) as name, min(least(s.sent_at, moment)) as first_seen,
           max(least(s.sent_at, moment)) as last_seen,
           coalesce(bit_or((select bit_or(1::bigint << (array_position(seen.image_digests, d.digest) - 1))
                            from unnest(s.image_digests) d(digest)
                            where d.digest = any (seen.image_digests))), 0) as mask
    from json_to_recordset(sent) as s(syscalls text[], image_digests text[], sent_at timestamp)
    cross join lateral unnest(s.syscalls) n(name)
    group by 1
  ), merged as (
    select coalesce(o.name, n.name) collate "C" as name,
           case when o.name is null then n.first_seen when n.first_seen < o.first_seen then n.first_seen
             else o.first_seen end as first_seen,
           case when n.last_seen > coalesce(o.last_seen + step, '-infinity') then n.last_seen
             else o.last_seen end as last_seen,
           coalesce(o.mask, 0) | coalesce(n.mask, 0) as mask
    from old o
    full join new n on n.name = o.name
    where coalesce(o.name, n.name) = any (new_names)
  )
  select array_agg(m.name order by m.name), array_agg(m.first_seen order by m.name),
         array_agg(m.last_seen order by m.name),
         array_agg(m.mask order by m.name)
  into seen.names, seen.first_seen, seen.last_seen, seen.images
  from merged m;

  if seen.names is null or seen is not distinct from stored then
    return;
  end if;
  insert into workload_syscalls_seen as s
  values (of_namespace, of_kind, of_workload, seen.names, seen.first_seen, seen.last_seen, seen.images,
          seen.image_digests, seen.image_seen)
  on conflict (pod_namespace, workload_kind, workload_name) do update set
    names         = excluded.names,
    first_seen    = excluded.first_seen,
    last_seen     = excluded.last_seen,
    images        = excluded.images,
    image_digests = excluded.image_digests,
    image_seen    = excluded.image_seen;
end
$$;
