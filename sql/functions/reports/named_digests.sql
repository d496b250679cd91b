-- The image digests that the payloads of a digest and source name: their own, then platform manifests and index.
create or replace function named_digests(of_digest text, of_source text)
returns table (image_digest text, join_rank smallint)
language sql stable parallel safe
as $$
  select of_digest, 1::smallint
  union all
  select m.digest, 2::smallint
  from image_report r cross join unnest(r.manifest_digests) m(digest)
  where r.digest = of_digest and r.source = of_source
$$;
