-- Deletes the pages of a set, and of all other sets of that SBOM that are not newer.
create or replace function drop_pages(sent image_report, page_set text) returns void
language sql
as $$
  delete from sbom_page p
  where p.digest = sent.digest and p.source = sent.source and (p.set_id = page_set or p.scanned_at <= sent.scanned_at)
$$;
