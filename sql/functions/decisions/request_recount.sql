-- Makes the next pass read images again whose platforms or indexes are known otherwise now: decisions about other
-- images may hold for them.
create or replace function request_recount(images text[]) returns void
language sql
as $$
  select reread_images(images)
  where exists (select from vuln_decision d where d.ended_at is null and d.image_digest is not null)
$$;
