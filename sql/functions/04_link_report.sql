-- Relinks a payload that was just written, and the SBOMs that it was matched from. One process at a time writes links. Who cannot have
-- their lock in time goes without: a payload is not held up by its links, which the next pass of the job brings.
create or replace function link_report(written image_report) returns void
language plpgsql
set lock_timeout = '1s'
as $$
begin
  begin
    perform pg_advisory_xact_lock(x'6c696e6b'::integer, 0);
  exception when lock_not_available then
    return;
  end;
  perform relink(written.digest, written.source);
  if written.kind = 'vulnerabilities' then
    perform relink(s.digest, s.source)
    from (select r.digest, r.source
          from image_report r
          where r.kind = 'sbom' and r.source = any (written.sbom_sources)
            and (r.digest = written.digest or r.index_digest = written.digest)
          order by r.digest, r.source) s;
  end if;
end
$$;
