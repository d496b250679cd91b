-- Names the findings of a payload by the aliases known now, starting from the rows as posted. Returns false, without
-- doing anything, while the payload is being written.
create or replace function rename_findings(of_digest text, of_source text) returns boolean
language plpgsql
set enable_hashjoin = on
as $$
begin
  if not pg_try_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', 'vulnerabilities', of_digest, of_source), 0))
    then
    return false;
  end if;
  perform write_findings(of_digest, of_source, array(
    select f::image_finding
    from (select f.*
          from image_finding f
          where f.digest = of_digest and f.source = of_source
            and (f.vuln_id, f.package_name, f.installed_version) not in (
              select s.vuln_id, s.package_name, s.installed_version
              from finding_sent s where s.digest = of_digest and s.source = of_source)
          union all
          select p.*
          from finding_sent s cross join lateral jsonb_populate_record(null::image_finding, s.sent) p
          where s.digest = of_digest and s.source = of_source) f));
  return true;
end
$$;
