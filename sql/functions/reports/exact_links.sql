-- The images of the inventory that the payloads of a digest and source describe by digest; for an SBOM also those of
-- the reports that were matched from it. It reads the digests of those reports, not their links, so that no two
-- payloads keep each other's links alive.
create or replace function exact_links(of_digest text, of_source text)
returns table (image_digest text, join_rank smallint)
language sql stable parallel safe
as $$
  select n.image_digest, min(n.join_rank) as join_rank
  from (select d.image_digest, d.join_rank
        from named_digests(of_digest, of_source) d
        where exists (select from image_report r where r.digest = of_digest and r.source = of_source)
        union all
        select d.image_digest, d.join_rank
        from image_report s
        join image_report v
          -- Not `in`: without bitmap scans PostgreSQL 15 walks all reports for it.
          on v.digest = any (array[s.digest, s.index_digest]) and v.kind = 'vulnerabilities'
         and s.source = any (v.sbom_sources)
        cross join lateral named_digests(v.digest, v.source) d
        where s.digest = of_digest and s.source = of_source and s.kind = 'sbom') n
  join image m on m.digest = n.image_digest
  group by n.image_digest
$$;
