-- Deletes the pages of a set that received none for `ttl_secs`; returns how many. A set that is being written stays.
create or replace function expire_pages(of_digest text, of_source text, of_set text, ttl_secs integer) returns bigint
language plpgsql
as $$
declare
  expired bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', 'sbom', of_digest, of_source), 0)) then
    return 0;
  end if;
  delete from sbom_page p
  where p.digest = of_digest and p.source = of_source and p.set_id = of_set
    and not exists (
      select from sbom_page n
      where n.digest = of_digest and n.source = of_source and n.set_id = of_set
        and n.received_at >= now() at time zone 'utc' - make_interval(secs => ttl_secs));
  get diagnostics expired = row_count;
  return expired;
end
$$;
