-- The repositories that are one of `exact`, or end with a slash and `suffix`, all in lower case; with a tag, their
-- images that have it (docs/contract.md#search). At most `max_looked` repositories are looked at. The index has them
-- from behind, and is walked from one to the next.
create or replace function search_repositories(exact text[], suffix text, tag text, max_looked integer,
                                               max_images integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable
as $$
  with recursive endings as materialized (
    select reverse(e.name) as low, reverse(e.name) || chr(1) as high, 0 as place from unnest(exact) e(name)
    union all
    select reverse('/' || suffix), prefix_end(reverse('/' || suffix)), 1 where suffix is not null),
  steps (high, place, key) as (
    select e.high, e.place, f.key
    from endings e
    cross join lateral (
      select reverse(lower(m.repository)) as key from image m
      where m.repository is not null and reverse(lower(m.repository)) >= e.low
        and reverse(lower(m.repository)) < e.high
      order by reverse(lower(m.repository)) limit 1) f
    union all
    select s.high, s.place, f.key
    from steps s
    cross join lateral (
      select reverse(lower(m.repository)) as key from image m
      where m.repository is not null and reverse(lower(m.repository)) > s.key
        and reverse(lower(m.repository)) < s.high
      order by reverse(lower(m.repository)) limit 1) f),
  found as materialized (
    select r.repository, min(s.place) as place
    from (select s.* from steps s limit max_looked) s
    cross join lateral (
      select distinct m.repository from image m
      where m.repository is not null and reverse(lower(m.repository)) = s.key) r
    group by r.repository)
  select exists (
           select from (select m.digest from image m where m.repository = f.repository offset 0) m
           where image_runs(m.digest, window_secs)),
         f.place, f.repository, json_build_object('type', 'repository', 'repository', f.repository)
  from found f
  union all
  (select image_runs(i.digest, window_secs), i.place, i.digest, json_build_object(
            'type', 'image', 'digest', i.digest, 'repository', i.repository, 'tags', i.tags, 'indexDigest', null,
            'inInventory', true)
   from (select m.*, f.place from found f join image m on m.repository = f.repository
         where tag = any (m.tags)
         order by m.digest
         limit max_images) i)
  union all
  -- There may be more.
  select null, 2, '', null where (select count(*) from (select s.* from steps s limit max_looked) s) >= max_looked
$$;
