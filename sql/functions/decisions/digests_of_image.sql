-- The digests under which a decision about an image may name it: its own, and those of the indexes that it is a
-- platform of. An index is more than one of its platforms, so it is not the other way round; nor is a payload about
-- one platform, which may list the others, an index.
create or replace function digests_of_image(of_digest text) returns table (digest text)
language sql stable parallel safe
as $$
  select of_digest
  union
  select r.index_digest from image_report r where r.digest = of_digest and r.index_digest is not null
  union
  select i.digest
  from image_link l
  join image_report r on r.digest = l.digest and r.source = l.source
  cross join lateral (
    select array(select m.value from jsonb_each_text(r.platform_manifests) m) as platforms) p
  cross join lateral (
    select case when r.digest = any (p.platforms) or r.digest_kind = 'manifest' then r.index_digest
                else coalesce(r.index_digest, r.digest) end as digest) i
  -- Links are also those of other payloads, and of the index.
  where l.image_digest = of_digest and l.join_rank = 2 and of_digest = any (p.platforms) and i.digest is not null
$$;
