-- Stores the decisions of a VEX document over those of the version before (docs/contract.md#decisions). The answer says
-- which version is stored now. Of one version the content with the newest time holds: many publishers never count the
-- version up. Decisions of the document that the newer version has no more are ended. Of more than
-- `max_counted` vulnerabilities the job counts the decided workloads.
drop function if exists store_vex(json, text, text, bigint, bigint);
create or replace function store_vex(document json, statements text, decisions text, max_holding bigint,
                                     max_documents bigint, max_counted bigint)
returns json
language plpgsql
set enable_nestloop = on
as $$
declare
  sent   vex_document := json_populate_record(null::vex_document, document);
  stored vex_document;
  made   vuln_decision[];
  names  text[];
  moment timestamp;
  issued timestamp;
begin
  perform lock_decisions();
  moment := clock_timestamp() at time zone 'utc';
  -- Null is left out.
  issued := least(sent.issued_at, moment);
  select v.* into stored from vex_document v where v.document_id = sent.document_id;
  if stored.version = sent.version and stored.content_hash = sent.content_hash then
    return json_build_object('status', 'unchanged', 'storedVersion', stored.version);
  elsif stored.version > sent.version
        or stored.version = sent.version and issued <= stored.issued_at then
    return json_build_object('status', 'stale', 'storedVersion', stored.version);
  end if;
  made := array(select d from json_populate_recordset(null::vuln_decision, decisions::json) d);
  if (select count(*) from vuln_decision o
      where o.ended_at is null and o.document_id is distinct from sent.document_id) + cardinality(made) > max_holding
  then
    return json_build_object('status', 'full');
  end if;
  if stored.document_id is null and (select count(*) from vex_document) >= max_documents then
    return json_build_object('status', 'full of documents');
  end if;
  with ended as (
    update vuln_decision o
    set ended_at = moment, ended_how = 'replaced', ended_by = sent.author,
        ended_reason = 'version ' || sent.version || ' of the document'
    where o.ended_at is null and o.document_id = sent.document_id
    returning o.name)
  select array_agg(distinct e.name) into names from ended e;
  delete from vex_statement s where s.document_id = sent.document_id;
  with gone as (delete from vex_alias a where a.document_id = sent.document_id returning a.alias),
  told as (
    insert into vex_alias (document_id, alias, vuln_id)
    select distinct sent.document_id, upper(a.alias), upper(d.vuln_id)
    from json_to_recordset(decisions::json) d(vuln_id text, aliases text[])
    cross join unnest(d.aliases) a(alias)
    on conflict do nothing
    returning alias)
  select names || array_agg(c.alias) into names
  from (select g.alias from gone g union select t.alias from told t) c
  where exists (select from cve_detail d where upper(d.vuln_id) = c.alias);
  insert into vex_statement (document_id, position, content)
  select sent.document_id, s.position, s.content
  from json_to_recordset(statements::json) s(position bigint, content json);
  insert into vuln_decision (vuln_id, name, scope_rank, image_digest, image_arch, repository, package_name,
                             package_purl, decision, justification, decided_by, reason, decided_at, document_id,
                             document_version,
                             statement_position, product)
  select d.vuln_id, upper(d.vuln_id), d.scope_rank, d.image_digest, d.image_arch, d.repository, d.package_name,
         d.package_purl,
         d.decision, d.justification, d.decided_by, d.reason, least(coalesce(d.decided_at, moment), moment),
         sent.document_id, sent.version, d.statement_position, d.product
  from unnest(made) with ordinality as d(id, vuln_id, name, scope_rank, pod_namespace, workload_kind, workload_name,
                                         image_digest, repository, package_name, package_purl, decision, justification,
                                         holds_until, decided_by, reason, decided_at, document_id, document_version,
                                         statement_position, product, ended_at, ended_how, ended_by, ended_reason,
                                         image_arch, nth)
  order by d.nth;
  insert into vex_document (document_id, format, version, author, issued_at, content_hash, received_at)
  values (sent.document_id, sent.format, sent.version, sent.author, issued,
          sent.content_hash, moment)
  on conflict (document_id) do update set
    format = excluded.format, version = excluded.version, author = excluded.author, issued_at = excluded.issued_at,
    content_hash = excluded.content_hash, received_at = excluded.received_at;
  perform count_decided_under(array(
    select distinct n.name from unnest(names || array(select upper(d.vuln_id) from unnest(made) d)) n(name)),
    max_counted);
  return json_build_object('status', 'stored', 'storedVersion', sent.version);
end
$$;
