-- Takes the lock of a payload and answers what the header alone decides; null if the payload has to be stored.
-- Unchanged content is not stored again, a scan that is not older updates only header and links. Different content that
-- is not strictly newer is refused as stale. A `post` id that is stored already belongs to a retry whose answer was
-- lost.
create or replace function resolve_by_header(sent image_report) returns json
language plpgsql
as $$
declare
  stored image_report;
begin
  perform pg_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', sent.kind, sent.digest, sent.source), 0));
  select * into stored from image_report r where r.digest = sent.digest and r.source = sent.source
         and r.kind = sent.kind;
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
      if (sent.digest_kind, sent.platform_manifests, sent.index_digest)
         is distinct from (stored.digest_kind, stored.platform_manifests, stored.index_digest) then
        perform request_recount(array(
          select l.image_digest from image_link l where l.digest = sent.digest and l.source = sent.source));
      end if;
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
