-- Identifies the payloads that stand for an image, joins and content included; null without any.
create or replace function payloads_of(asked text) returns text
language sql stable parallel safe
as $$
  select string_agg(concat_ws(' ', k.kind, e.source, e.digest, e.join_rank, r.content_hash), e'\n'
                    order by k.kind, e.source, e.digest)
  from (values ('vulnerabilities'), ('sbom')) k(kind)
  cross join lateral answering_reports(asked, k.kind) e
  join image_report r on r.digest = e.digest and r.source = e.source and r.kind = k.kind
  where e.join_rank < 4
$$;
