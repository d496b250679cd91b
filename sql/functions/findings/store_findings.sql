-- Stores a payload of findings over the previous one of the same digest and source (docs/contract.md#findings). Without
-- `rows` it answers what the header alone decides, else that the rows are needed.
create or replace function store_findings(header json, rows text) returns json
language plpgsql
as $$
declare
  sent    image_report := report_from_header(header, 'vulnerabilities');
  decided json         := resolve_by_header(sent);
begin
  if decided is not null then
    return decided;
  elsif rows is null then
    return json_build_object('status', 'rows wanted');
  end if;

  perform replace_findings(sent.digest, sent.source, rows::json);
  perform write_report(sent);
  perform link_report(sent);
  return json_build_object('status', 'stored', 'items', sent.item_count);
end
$$;
