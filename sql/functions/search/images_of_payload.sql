-- The images of the inventory that a payload stands for (docs/contract.md#joins). With `running_only`, those that run.
create or replace function images_of_payload(of_digest text, of_source text, of_kind text, running_only boolean,
                                             window_secs integer)
returns table (image_digest text)
language sql stable parallel safe
as $$
  select i.image_digest
  from (select c.image_digest
        from (select of_digest as image_digest where exists (select from image m where m.digest = of_digest)
              union
              select l.image_digest from image_link l where l.digest = of_digest and l.source = of_source) c
        where not running_only or image_runs(c.image_digest, window_secs)
        offset 0) i
  where exists (select from image m where m.digest = i.image_digest)
    and exists (select from answering_reports(i.image_digest, of_kind) e
                where e.digest = of_digest and e.source = of_source)
$$;
