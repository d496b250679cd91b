-- Identifies the payloads that stand for an image, joins and content included; null without any. The number before them
-- is that of the rules by which their files are linked: with another one, the next pass of the job reads every image
-- again, and nothing counts as unused until then.
create or replace function payloads_of(asked text) returns text
language sql stable parallel safe
as $$
  select e'2\n' || string_agg(concat_ws(' ', p.kind, p.source, p.digest, p.join_rank, r.content_hash), e'\n'
                              order by p.kind, p.source, p.digest)
  from (select 'vulnerabilities' as kind, e.* from answering_reports(asked, 'vulnerabilities') e
        union all
        select 'sbom', e.* from answering_reports(asked, 'sbom') e) p
  cross join lateral (
    select r.content_hash from image_report r
    where r.digest = p.digest and r.source = p.source and r.kind = p.kind offset 0) r
  where p.join_rank < 4
$$;
