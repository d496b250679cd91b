-- An EPSS that is exactly the threshold of tiers counts now. All vulnerabilities are counted again.
insert into summary_news (vuln_id)
select c.vuln_id from cve_summary c where c.scope_namespace = '' on conflict do nothing;
