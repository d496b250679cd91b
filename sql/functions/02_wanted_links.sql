-- The links that the payloads of a digest and source are to have now (interop-supply-chain 5): by their digests; for an SBOM also
-- those of the reports that were matched from it; and only when there are none, by workload and tag, to images that no payload has by
-- its digest. An image keeps the first of its tags: the one that the container writes now counts, too. What is matched from an SBOM
-- is asked for its digests and not for its links, so that no two payloads can keep each other's.
create or replace function wanted_links(of_digest text, of_source text)
returns table (image_digest text, join_rank smallint)
language sql stable parallel safe
as $$
  with reports as materialized (
    select r.* from image_report r where r.digest = of_digest and r.source = of_source),
  exact as materialized (
    select n.image_digest, min(n.join_rank) as join_rank
    from (select d.image_digest, d.join_rank from named_digests(of_digest, of_source) d where exists (select from reports)
          union all
          select d.image_digest, d.join_rank
          from reports s
          join image_report v
            on v.digest in (s.digest, s.index_digest) and v.kind = 'vulnerabilities' and s.source = any (v.sbom_sources)
          cross join lateral named_digests(v.digest, v.source) d
          where s.kind = 'sbom') n
    join image m on m.digest = n.image_digest
    group by n.image_digest)
  select e.image_digest, e.join_rank from exact e
  union all
  select distinct m.digest, 3::smallint
  from reports r
  cross join lateral jsonb_to_recordset(r.observed_in) o(namespace text, kind text, name text, container text)
  join workload_container w
    on w.pod_namespace = o.namespace and w.container_name = o.container
   and is_workload_of(o.kind, o.name, w.workload_kind, w.workload_name)
  join image m
    on m.digest = w.image_digest and m.repository = r.normal_repository
   and (r.tag = any (m.tags) or r.tag = split_part(regexp_replace(split_part(w.image_ref, '@', 1), '^.*/', ''), ':', 2))
  where not exists (select from exact)
    and not exists (select from image_link l
                    where l.image_digest = m.digest and l.join_rank < 3 and (l.digest, l.source) <> (of_digest, of_source))
$$;
