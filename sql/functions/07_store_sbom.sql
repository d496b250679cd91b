-- Stores an SBOM over that of the same digest and source, whole or as the last of its pages comes (interop-supply-chain 2.2 and 6), by the
-- rules of `store_findings`. `page` has the set, the index and the total; a set of one page is whole (S28).
create or replace function store_sbom(header json, page json, rows text) returns json
language plpgsql
as $$
declare
  max_components constant integer := 50000;
  page_set       constant text    := case when (page ->> 'total')::bigint > 1 then page ->> 'set_id' end;
  sent           image_report := sent_report(header, 'sbom');
  settled        json         := settle_report(sent);
  items          bigint;
begin
  if settled is null and page_set is not null then
    settled := stage_page(sent, page_set, (page ->> 'index')::bigint, (page ->> 'total')::bigint, rows);
  elsif settled is null and rows is null then
    settled := json_build_object('status', 'rows wanted');
  end if;
  if settled is not null then
    return settled;
  end if;

  if page_set is not null then
    select sum(p.item_count) into sent.item_count
    from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set;
  end if;
  if sent.item_count <= max_components then
    items := replace_components(sent.digest, sent.source, page_set, rows);
  end if;
  -- A set that is too large is gone with its refusal.
  perform drop_pages(sent, page_set);
  if items is null then
    return json_build_object('status', 'refused', 'reason', 'components', 'items', sent.item_count);
  end if;
  perform write_report(sent);
  perform link_report(sent);
  return json_build_object('status', 'stored', 'items', items);
end
$$;
