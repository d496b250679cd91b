-- Stores an SBOM over that of the same digest and source, whole or as the last of its pages comes (interop-supply-chain 2.2 and 6), by the
-- rules of `store_findings`. `page` has the set, the index and the total; a set of one page is whole (S28).
create or replace function store_sbom(header json, page json, rows text) returns json
language plpgsql
as $$
declare
  max_components constant integer := 50000;
  page_set       constant text    := case when (page ->> 'total')::bigint > 1 then page ->> 'set_id' end;
  sent           image_report := sent_report(header, 'sbom');
  stored         image_report;
  staged         json;
  items          bigint;
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
        sent.item_count := stored.item_count;
        delete from sbom_page p
        where p.digest = sent.digest and p.source = sent.source and p.scanned_at <= sent.scanned_at;
        perform write_report(sent);
        perform link_report(sent);
      end if;
      return json_build_object('status', 'unchanged');
    end if;
    if sent.scanned_at <= stored.scanned_at then
      return json_build_object('status', 'stale', 'stored_scanned_at', stored.scanned_at);
    end if;
  end if;

  if page_set is not null then
    staged := stage_page(sent, page_set, (page ->> 'index')::bigint, (page ->> 'total')::bigint, rows);
    if staged is not null then
      return staged;
    end if;
    select sum(p.item_count) into sent.item_count
    from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set;
  elsif rows is null then
    return json_build_object('status', 'rows wanted');
  end if;

  if sent.item_count <= max_components then
    items := replace_components(sent.digest, sent.source, page_set, rows);
  end if;
  -- A set that is too large is gone with its refusal.
  delete from sbom_page p
  where p.digest = sent.digest and p.source = sent.source and (p.set_id = page_set or p.scanned_at <= sent.scanned_at);
  if items is null then
    return json_build_object('status', 'refused', 'reason', 'components', 'items', sent.item_count);
  end if;
  perform write_report(sent);
  perform link_report(sent);
  return json_build_object('status', 'stored', 'items', items);
end
$$;
