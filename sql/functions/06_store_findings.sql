-- Stores a payload of findings over that of the same digest and source (interop-supply-chain 2.2): what is the same is left, what is not
-- strictly newer is refused, the rest replaces. Without `rows` it answers what needs none, else that it wants them. A `post` that was
-- stored already is one whose answer was lost.
create or replace function store_findings(header json, rows text) returns json
language plpgsql
as $$
declare
  sent   image_report := sent_report(header, 'vulnerabilities');
  stored image_report;
begin
  perform pg_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', sent.kind, sent.digest, sent.source), 0));
  select * into stored from image_report r where r.digest = sent.digest and r.source = sent.source and r.kind = sent.kind;
  if found then
    if stored.post = sent.post then
      return json_build_object('status', 'stored', 'items', stored.item_count);
    end if;
    if stored.content_hash = sent.content_hash then
      if sent.scanned_at >= stored.scanned_at then
        sent.post := stored.post;
        perform write_report(sent);
        perform link_report(sent);
      end if;
      return json_build_object('status', 'unchanged');
    end if;
    if sent.scanned_at <= stored.scanned_at then
      return json_build_object('status', 'stale', 'stored_scanned_at', stored.scanned_at);
    end if;
  end if;
  if rows is null then
    return json_build_object('status', 'rows wanted');
  end if;

  perform replace_findings(sent.digest, sent.source, rows::json);
  perform write_report(sent);
  perform link_report(sent);
  return json_build_object('status', 'stored', 'items', sent.item_count);
end
$$;
