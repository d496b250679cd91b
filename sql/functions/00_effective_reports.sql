-- The payloads of a kind that answer for a digest: those linked to it, and behind them the one that came under that very digest.
create or replace function effective_reports(asked text, of_kind text)
returns table (digest text, source text, join_rank smallint)
language sql stable parallel safe
as $$
  select distinct on (c.source) c.digest, c.source, c.join_rank
  from (select l.digest, l.source, l.join_rank, r.scanned_at
        from image_link l
        join image_report r on r.digest = l.digest and r.source = l.source and r.kind = of_kind
        where l.image_digest = asked
        union all
        select r.digest, r.source, 4::smallint, r.scanned_at
        from image_report r
        where r.digest = asked and r.kind = of_kind) c
  order by c.source, c.join_rank, c.scanned_at desc, c.digest
$$;
