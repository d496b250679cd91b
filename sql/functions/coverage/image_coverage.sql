-- The gaps in what is known of an image (docs/contract.md#coverage-report), always one row: `missing` has the codes in
-- their order; the rest is what they follow from, null where there is none. A join is that of the strongest answer.
-- Reports whose newest scan is before `old_before` are old, results of signature checks before `checked_since` no
-- longer count.
create or replace function image_coverage(asked text, old_before timestamp, checked_since timestamp)
returns table (missing text[], report_at timestamp, report_rank integer, sbom_at timestamp, sbom_rank integer,
               verdict text, checked_at timestamp)
language sql stable parallel safe
as $$
  select array_remove(array[
           case when v.at is null then 'no_report' end,
           case when v.at < old_before then 'old_report' end,
           case when v.rank = 3 then 'guessed_report' end,
           case when v.is_cut then 'cut_report' end,
           case when s.at is null then 'no_sbom' end,
           case when s.rank = 3 then 'guessed_sbom' end,
           case when a.verdict is null then 'no_signature_result' end,
           case when a.verdict = 'unknown' then 'unknown_signature' end], null),
         v.at, v.rank, s.at, s.rank, a.verdict, a.checked_at
  from (
    select max(g.at) as at, min(g.rank) as rank, bool_or(g.is_cut or g.reports >= max_platform_reports()) as is_cut
    from (
      select e.source, max(r.scanned_at) as at, min(e.join_rank)::integer as rank, count(*) as reports,
             bool_or(exists (
               select from image_finding f where f.digest = e.digest and f.source = e.source and f.omitted > 0
               offset 0)) as is_cut
      from answering_reports(asked, 'vulnerabilities') e
      join image_report r on r.digest = e.digest and r.source = e.source and r.kind = 'vulnerabilities'
      group by e.source) g) v
  cross join (
    select max(r.scanned_at) as at, min(e.join_rank)::integer as rank
    from answering_reports(asked, 'sbom') e
    join image_report r on r.digest = e.digest and r.source = e.source and r.kind = 'sbom') s
  left join (
    select i.verdict, i.checked_at from image_attestation i where i.digest = asked and i.checked_at >= checked_since) a
    on true
$$;
