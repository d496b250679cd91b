-- The digests under which a decision about an image may name it: its own, and those of the indexes that it is a
-- platform of. An index is more than one of its platforms, so it is not the other way round; nor is a payload about
-- one platform, which may list the others, an index. A decision that names an architecture needs the same `arch` here,
-- which is '' where the digest is that of the image itself, and null where it is not known.
drop function if exists digests_of_image(text);
create or replace function digests_of_image(of_digest text) returns table (digest text, arch text)
language sql stable parallel safe
as $$
  select of_digest,
         case when not exists (select from image_report r where r.index_digest = of_digest)
                   and not exists (
                     select from image_report r
                     where r.digest = of_digest
                       and (r.digest_kind = 'index' or r.platform_manifests <> '{}' and r.index_digest is null
                            and of_digest <> all (r.manifest_digests)))
              then '' end
  union
  select r.index_digest, null from image_report r where r.digest = of_digest and r.index_digest is not null
  union
  select i.digest, split_part(p.platform, '/', 2)
  from image_link l
  join image_report r on r.digest = l.digest and r.source = l.source
  cross join lateral jsonb_each_text(r.platform_manifests) p(platform, digest)
  cross join lateral (
    select case when r.digest_kind = 'manifest'
                     or exists (select from jsonb_each_text(r.platform_manifests) o where o.value = r.digest)
                then r.index_digest
                else coalesce(r.index_digest, r.digest) end as digest) i
  -- Links are also those of other payloads, and of the index.
  where l.image_digest = of_digest and l.join_rank < 3 and p.digest = of_digest and i.digest is not null
$$;
