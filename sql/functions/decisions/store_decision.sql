-- Stores a decision of a person over those of the same scope and package, under any id of the vulnerability; without
-- `decision` it takes them back (docs/contract.md#decisions). The same decision again changes nothing. Statements of
-- documents stay.
create or replace function store_decision(sent json, max_holding bigint, max_history bigint) returns json
language plpgsql
set enable_nestloop = on
as $$
declare
  d        vuln_decision := json_populate_record(null::vuln_decision, sent);
  ended    bigint[];
  same     bigint;
begin
  perform lock_decisions();
  if d.holds_until < (now() at time zone 'utc')::date then
    return json_build_object('status', 'past');
  end if;
  -- Of two ids of one vulnerability each finds the other; an advisory is found by its vulnerabilities only.
  ended := array(
    select o.id
    from names_of_vulns(array[d.vuln_id]) n
    join vuln_decision o on o.name = n.name
    where o.ended_at is null and o.document_id is null and o.scope_rank = d.scope_rank
      and (o.pod_namespace, o.workload_kind, o.workload_name, o.image_digest, o.repository, o.package_name,
           o.package_purl)
          is not distinct from
          (d.pod_namespace, d.workload_kind, d.workload_name, d.image_digest, d.repository, d.package_name,
           d.package_purl)
      and exists (select from names_of_vulns(array[o.name]) b where b.name = upper(d.vuln_id))
    order by o.id);
  if d.decision is null and ended = '{}' then
    return json_build_object('status', 'unchanged', 'decision', null);
  end if;
  if cardinality(ended) = 1 and exists (
       select from vuln_decision o
       where o.id = ended[1]
         and (o.decision, o.justification, o.holds_until, o.decided_by, o.reason)
             is not distinct from (d.decision, d.justification, d.holds_until, d.decided_by, d.reason)) then
    return json_build_object(
      'status', 'unchanged', 'decision', (select decision_shown(o) from vuln_decision o where o.id = ended[1]));
  end if;
  if d.decision is not null and ended = '{}'
     and (select count(*) from vuln_decision o where o.ended_at is null) >= max_holding then
    return json_build_object('status', 'full');
  end if;
  update vuln_decision o
  set ended_at = clock_timestamp() at time zone 'utc',
      ended_how = case when d.decision is null then 'withdrawn' else 'replaced' end,
      ended_by = d.decided_by, ended_reason = d.reason
  where o.id = any (ended);
  if d.decision is not null then
    insert into vuln_decision (vuln_id, name, scope_rank, pod_namespace, workload_kind, workload_name, image_digest,
                               repository, package_name, package_purl, decision, justification, holds_until, decided_by,
                               reason, decided_at)
    values (d.vuln_id, upper(d.vuln_id), d.scope_rank, d.pod_namespace, d.workload_kind, d.workload_name,
            d.image_digest, d.repository, d.package_name, d.package_purl, d.decision, d.justification, d.holds_until,
            d.decided_by, d.reason, clock_timestamp() at time zone 'utc')
    returning id into same;
  end if;
  delete from vuln_decision o
  where o.id in (
    select h.id from vuln_decision h where h.name = upper(d.vuln_id) and h.ended_at is not null
    order by h.id desc offset max_history);
  perform count_decided_under(array[upper(d.vuln_id)], 200);
  return json_build_object(
    'status', case when d.decision is null then 'withdrawn' else 'stored' end,
    'decision', (select decision_shown(o) from vuln_decision o where o.id = same));
end
$$;
