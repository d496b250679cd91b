-- Makes the next pass read images again although their payloads are the same. Rows locked by a running pass are skipped,
-- so that ingest never waits for a pass.
create or replace function reread_images(images text[]) returns void
language sql
set enable_nestloop = on
as $$
  update summary_image s set payloads = ''
  from (select i.image_digest
        from summary_image i
        where i.image_digest = any (images)
        order by i.image_digest
        for update skip locked) i
  where s.image_digest = i.image_digest
$$;
