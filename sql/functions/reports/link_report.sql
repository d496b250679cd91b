-- Updates the links of a payload that was just written, and of the SBOMs that it was matched from. One process at a
-- time writes links. If the lock is not free in time the payload is stored without new links, and the next pass of the
-- job adds them. The timeout is below `deadlock_timeout` (1 s by default): the deadlock detector might end the other
-- transaction.
create or replace function link_report(written image_report) returns void
language plpgsql
set lock_timeout = '500ms'
as $$
begin
  perform pg_advisory_xact_lock(x'6c696e6b'::integer, 0);
  perform relink(written.digest, written.source);
  if written.kind = 'vulnerabilities' then
    perform relink(s.digest, s.source)
    from (select r.digest, r.source
          from image_report r
          where r.digest = written.digest and r.kind = 'sbom' and r.source = any (written.sbom_sources)
          union
          select r.digest, r.source
          from image_report r
          where r.index_digest = written.digest and r.kind = 'sbom' and r.source = any (written.sbom_sources)
          order by 1, 2) s;
  end if;
exception when lock_not_available or deadlock_detected then
  null;
end
$$;
