-- The payloads with findings of a vulnerability under any of its ids, in any case, and the images of the inventory that
-- they stand for.
create or replace function affected_payloads(vuln text)
returns table (image_digest text, digest text, source text, join_rank smallint)
language sql stable parallel safe
set enable_hashjoin = off
as $$
  with ids as materialized (
    select vuln_names(vuln) as names)
  select i.image_digest, p.digest, p.source, p.join_rank
  from (select l.image_digest
        from (select distinct f.digest, f.source from image_finding f
              where upper(f.vuln_id) = any ((select n.names from ids n)::text[])) f
        join image_link l on l.digest = f.digest and l.source = f.source
        union
        select f.digest from image_finding f where upper(f.vuln_id) = any ((select n.names from ids n)::text[])) i
  join image m on m.digest = i.image_digest
  cross join lateral answering_reports(i.image_digest, 'vulnerabilities') p
  where exists (
    select from image_finding f where upper(f.vuln_id) = any ((select n.names from ids n)::text[])
           and f.digest = p.digest and f.source = p.source)
$$;
