-- The ids of these findings that are aliases, with the vulnerabilities they stand for. The lateral join looks up each
-- id, even under a plan made when the table was small.
create or replace function canonical_ids(told image_finding[])
returns table (id text, vuln_id text)
language sql stable
set enable_nestloop = on
set enable_seqscan = off
as $$
  select n.vuln_id, n.canonical
  from (select i.vuln_id, canonical_id(i.vuln_id) as canonical
        from (select distinct t.vuln_id from unnest(told) t where may_be_renamed(t.vuln_id, t.aliases)) i
        offset 0) n
  where n.canonical is not null
$$;
