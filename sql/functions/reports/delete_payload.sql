-- Deletes the payloads of a digest and source from all tables if they are still unused; returns the number of rows. A
-- post of the payload that is under way has precedence: then nothing is deleted. Its links are updated first: an image
-- may have started to run since the last pass that updated them.
create or replace function delete_payload(of_digest text, of_source text, days integer, grace_hours integer,
                                          window_secs integer)
returns bigint
language plpgsql
as $$
declare
  deleted  bigint := 0;
  uncertain text[];
  rows     bigint;
begin
  if not (pg_try_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', 'vulnerabilities', of_digest, of_source), 0))
          and pg_try_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', 'sbom', of_digest, of_source), 0))
          and pg_try_advisory_xact_lock(x'6c696e6b'::integer, 0)) then
    return 0;
  end if;
  perform relink(of_digest, of_source);
  if not is_payload_unused(of_digest, of_source, days, grace_hours, window_secs) then
    return 0;
  end if;

  with gone as (
    delete from image_finding f where f.digest = of_digest and f.source = of_source
    returning f.vuln_id, f.kev, f.kev_date_added, f.epss, f.epss_percentile)
  select count(*), array_agg(distinct g.vuln_id) filter (where num_nonnulls(g.kev, g.kev_date_added, g.epss,
      g.epss_percentile) > 0)
  into deleted, uncertain
  from gone g;
  perform request_fact_refresh(uncertain);
  delete from finding_sent s where s.digest = of_digest and s.source = of_source;
  delete from image_component c where c.digest = of_digest and c.source = of_source;
  get diagnostics rows = row_count;
  deleted := deleted + rows;
  delete from payload_packages p where p.digest = of_digest and p.source = of_source;
  delete from image_link l where l.digest = of_digest and l.source = of_source;
  get diagnostics rows = row_count;
  deleted := deleted + rows;
  delete from image_report r where r.digest = of_digest and r.source = of_source;
  get diagnostics rows = row_count;
  return deleted + rows;
end
$$;
