-- Relinks a payload that was just written, and the SBOMs that it was matched from. One process at a time writes links. Who cannot have
-- a lock in time goes without: a payload is not held up by its links, nor lost for them, and the next pass of the job brings them.
-- That is before PostgreSQL looks for deadlocks (`deadlock_timeout`, 1 s unless the server is told otherwise): it would end one of two who wait
-- for each other, and that may be the other one.
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
