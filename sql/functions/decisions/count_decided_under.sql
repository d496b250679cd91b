-- Counts the listed vulnerabilities again that decisions under these names, in upper case, are about.
create or replace function count_decided_under(names text[]) returns void
language plpgsql
set enable_nestloop = on
set enable_seqscan = off
as $$
begin
  perform count_decided(array(
    select distinct d.vuln_id
    from unnest(names) n(name)
    cross join lateral unnest(vuln_names(n.name)) k(name)
    join cve_detail d on upper(d.vuln_id) = k.name));
end
$$;
