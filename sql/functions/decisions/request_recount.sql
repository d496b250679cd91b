-- Makes the next pass read images again whose platforms or indexes are known otherwise now: decisions about other images
-- may hold for them. Rows locked by a running pass are skipped, so that ingest never waits for a pass.
create or replace function request_recount(images text[]) returns void
language sql
set enable_nestloop = on
as $$
  update summary_image s set payloads = ''
  from (select i.image_digest
        from summary_image i
        where i.image_digest = any (images)
          and exists (select from vuln_decision d where d.ended_at is null and d.image_digest is not null)
        order by i.image_digest
        for update skip locked) i
  where s.image_digest = i.image_digest
$$;
