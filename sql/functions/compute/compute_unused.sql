-- The ids of those containers that have neither a sample nor a row of history.
create or replace function compute_unused(ids bigint[])
returns table (id bigint)
language sql stable
as $$
  select c.id
  from unnest(ids) i(id)
  join compute_container c on c.id = i.id
  where not exists (select from compute_latest l where l.container_uid = c.container_uid offset 0)
    and not exists (select from compute_minute m where m.container_id = c.id offset 0)
    and not exists (select from compute_folded f where f.container_id = c.id offset 0)
    and not exists (select from compute_usage u where u.container_id = c.id offset 0)
    and not exists (select from compute_uncounted u where u.container_id = c.id offset 0)
    and not exists (select from compute_minute_pack k where k.container_id = c.id offset 0)
    and not exists (select from compute_folded_pack k where k.container_id = c.id offset 0)
    and not exists (select from compute_contention p where p.victim_id = c.id offset 0)
    and not exists (select from compute_contention_kept p where p.victim_id = c.id offset 0)
  order by c.id
$$;
