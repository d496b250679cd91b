-- The payloads of a kind that stand for an image of the inventory: of each source the best join, of equals the newest scan.
create or replace function linked_reports(image text, of_kind text)
returns table (digest text, source text, join_rank smallint)
language sql stable parallel safe
as $$
  select distinct on (l.source) l.digest, l.source, l.join_rank
  from image_link l
  join image_report r on r.digest = l.digest and r.source = l.source and r.kind = of_kind
  where l.image_digest = image
  order by l.source, l.join_rank, r.scanned_at desc, l.digest
$$;
