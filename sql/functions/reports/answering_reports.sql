-- The payloads of a kind that stand for a digest, and how they were joined to it (docs/contract.md#joins). Per source,
-- the first that exists of: payloads posted under this very digest, linked or not; payloads linked by their digests;
-- payloads guessed by tag, unless any payload has the digest itself. Payloads for different platform manifests of the
-- digest all count; among payloads that describe the same content only the newest scan does.
create or replace function answering_reports(asked text, of_kind text)
returns table (digest text, source text, join_rank smallint)
language sql stable parallel safe
as $$
  select b.digest, b.source, b.join_rank
  from (
    select s.*, row_number() over (partition by s.source order by s.scanned_at desc, s.digest) as nth
    from (
      select c.*, min(c.closeness) over (partition by c.source) as closest,
             row_number() over (partition by c.source, c.closeness, c.platform order by c.scanned_at desc,
                                c.digest) as newest
      from (
        select r.digest, r.source, case when exists (select from image m where m.digest = asked) then 1
               else 4 end::smallint as join_rank,
               0 as closeness, '' as platform, r.scanned_at
        from image_report r
        where r.digest = asked and r.kind = of_kind
        union all
        select l.digest, l.source, l.join_rank, case when l.join_rank < 3 then 1 else 2 end,
               case when l.join_rank < 3 and (
                 r.index_digest = asked
                 or exists (select from image_report p where p.digest = l.digest and p.index_digest = asked))
                    then l.digest else '' end,
               r.scanned_at
        from image_link l
        join image_report r on r.digest = l.digest and r.source = l.source and r.kind = of_kind
        where l.image_digest = asked and l.digest <> asked
          and (l.join_rank < 3 or not exists (select from image_report o where o.digest = asked))) c) s
    where s.closeness = s.closest and s.newest = 1) b
  where b.nth <= max_platform_reports()
$$;
