-- The rules by which decisions find aliases, platforms and package URLs are stricter: the next pass of
-- `supply-chain-refresh` counts the decided workloads again.
insert into summary_news (vuln_id)
select d.vuln_id from cve_decided d
union
select c.vuln_id from vuln_decision d join cve_detail c on upper(c.vuln_id) = d.name where d.ended_at is null
on conflict do nothing;
