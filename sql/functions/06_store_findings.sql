-- Stores a payload of findings over that of the same digest and source. Without `rows` it answers what needs none, else that it wants them.
create or replace function store_findings(header json, rows text) returns json
language plpgsql
as $$
declare
  sent    image_report := sent_report(header, 'vulnerabilities');
  settled json         := settle_report(sent);
begin
  if settled is not null then
    return settled;
  elsif rows is null then
    return json_build_object('status', 'rows wanted');
  end if;

  perform replace_findings(sent.digest, sent.source, rows::json);
  perform write_report(sent);
  perform link_report(sent);
  return json_build_object('status', 'stored', 'items', sent.item_count);
end
$$;
