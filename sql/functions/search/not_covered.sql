-- How many images run of which no report and no SBOM is stored (docs/contract.md#search).
create or replace function not_covered(window_secs integer) returns bigint
language sql stable
set enable_hashjoin = on
set enable_seqscan = on
as $$
  select count(*)
  from (select m.digest
        from image m
        where not exists (select from image_report r where r.digest = m.digest)
          and not exists (select from image_link l where l.image_digest = m.digest)
        offset 0) m
  where image_runs(m.digest, window_secs)
$$;
