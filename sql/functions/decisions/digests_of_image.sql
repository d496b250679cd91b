-- The digests under which a decision about an image may name it: its own, and those of the indexes that it is a
-- platform of. An index is more than one of its platforms, so it is not the other way round.
create or replace function digests_of_image(of_digest text) returns table (digest text)
language sql stable parallel safe
as $$
  select of_digest
  union
  select r.index_digest from image_report r where r.digest = of_digest and r.index_digest is not null
  union
  select r.digest
  from image_link l
  join image_report r on r.digest = l.digest and r.source = l.source
  where l.image_digest = of_digest and l.join_rank = 2 and r.index_digest is distinct from of_digest
$$;
