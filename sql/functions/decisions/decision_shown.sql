-- A decision as answers show it; keys in wire order.
create or replace function decision_shown(d vuln_decision) returns json
language sql stable parallel safe
as $$
  select json_build_object(
    'id', d.id, 'vulnerability', d.vuln_id, 'decision', d.decision, 'justification', d.justification,
    'scope', decision_scope(d), 'package', coalesce(d.package_purl, d.package_name),
    'until', to_char(d.holds_until, 'YYYY-MM-DD'), 'by', d.decided_by, 'why', d.reason,
    'decidedAt', wire_time(d.decided_at),
    'origin', case when d.document_id is not null then json_build_object(
      'document', d.document_id, 'version', d.document_version, 'statement', d.statement_position) end)
$$;
