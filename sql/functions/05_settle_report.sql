-- Takes the lock of a payload, and answers what its header alone settles (interop-supply-chain 2.2): what is the same is left, but that a scan
-- that is not older renews header and links; what is other and not strictly newer is refused. Null for what is to be stored. A `post`
-- that was stored already is one whose answer was lost.
create or replace function settle_report(sent image_report) returns json
language plpgsql
as $$
declare
  stored image_report;
begin
  perform pg_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', sent.kind, sent.digest, sent.source), 0));
  select * into stored from image_report r where r.digest = sent.digest and r.source = sent.source and r.kind = sent.kind;
  if not found then
    return null;
  elsif stored.post = sent.post then
    return json_build_object('status', 'stored', 'items', stored.item_count);
  elsif stored.content_hash = sent.content_hash then
    if sent.scanned_at >= stored.scanned_at then
      sent.post := stored.post;
      sent.item_count := stored.item_count;
      perform write_report(sent);
      perform link_report(sent);
      if sent.kind = 'sbom' then
        perform drop_pages(sent, null);
      end if;
    end if;
    return json_build_object('status', 'unchanged');
  elsif sent.scanned_at <= stored.scanned_at then
    return json_build_object('status', 'stale', 'stored_scanned_at', stored.scanned_at);
  end if;
  return null;
end
$$;
