-- The function of the release before, which knew of one id, goes.
drop function if exists affected_payloads(text);

-- The payloads that tell of a vulnerability by any of these ids, which are in upper case, and the images of the inventory that they stand
-- for: only those that answer for an image count.
create or replace function payloads_with(names text[])
returns table (image_digest text, digest text, source text, join_rank smallint)
language sql stable parallel safe
set enable_hashjoin = off
as $$
  select i.image_digest, p.digest, p.source, p.join_rank
  from (select distinct l.image_digest
        from (select distinct f.digest, f.source from image_finding f where upper(f.vuln_id) = any (names)) f
        join image_link l on l.digest = f.digest and l.source = f.source) i
  join image m on m.digest = i.image_digest
  cross join lateral linked_reports(i.image_digest, 'vulnerabilities') p
  where exists (
    select from image_finding f where upper(f.vuln_id) = any (names) and f.digest = p.digest and f.source = p.source)
$$;
