-- Makes the next pass read the images of a payload again although its content is the same. Rows locked by a running
-- pass are skipped, so that ingest never waits for a pass.
create or replace function request_image_refresh(of_digest text, of_source text) returns void
language sql
set enable_nestloop = on
as $$
  update summary_image s set payloads = ''
  from (select i.image_digest
        from summary_image i
        where i.image_digest = any (array(
          select l.image_digest from image_link l where l.digest = of_digest and l.source = of_source))
        order by i.image_digest
        for update skip locked) i
  where s.image_digest = i.image_digest
$$;
