-- The images and payloads whose digest begins with one of the texts, and the payloads for an index with such a digest
-- (docs/contract.md#search). An image that is not in the inventory neither runs nor is gone: that is unknown.
create or replace function search_images(beginnings text[], max_hits integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable strict
as $$
  select case when m.digest is not null then image_runs(m.digest, window_secs) end,
         case when f.digest = any (beginnings) or f.index_digest = any (beginnings) then 0 else 2 end,
         f.digest, json_build_object(
           'type', 'image', 'digest', f.digest, 'repository', m.repository, 'tags', coalesce(m.tags, '{}'),
           'indexDigest', f.index_digest, 'inInventory', m.digest is not null)
  from (
    select d.digest, min(d.index_digest) as index_digest
    from unnest(beginnings) b(beginning)
    cross join lateral (
      (select m.digest, null as index_digest from image m
       where m.digest >= b.beginning and m.digest < b.beginning || 'g' order by m.digest limit max_hits)
      union
      (select r.digest, null from image_report r
       where r.digest >= b.beginning and r.digest < b.beginning || 'g' order by r.digest limit max_hits)
      union
      (select r.digest, r.index_digest from image_report r
       where r.index_digest >= b.beginning and r.index_digest < b.beginning || 'g'
       order by r.index_digest limit max_hits)) d
    group by d.digest
    order by d.digest
    limit max_hits) f
  left join lateral (select m.* from image m where m.digest = f.digest offset 0) m on true
$$;
