-- Stores an SBOM over the previous one of the same digest and source (docs/contract.md#sbom), whole or when the last of
-- its pages arrives, by the rules of `store_findings`. `page` has the set, the index and the total; a set of one page
-- is whole.
create or replace function store_sbom(header json, page json, rows text) returns json
language plpgsql
as $$
declare
  max_components constant integer := 50000;
  page_set       constant text    := case when (page ->> 'total')::bigint > 1 then page ->> 'set_id' end;
  sent           image_report := report_from_header(header, 'sbom');
  decided        json         := resolve_by_header(sent);
  items          bigint;
begin
  if decided is null and page_set is not null then
    decided := stage_page(sent, page_set, (page ->> 'index')::bigint, (page ->> 'total')::bigint, rows);
  elsif decided is null and rows is null then
    decided := json_build_object('status', 'rows wanted');
  end if;
  if decided is not null then
    return decided;
  end if;

  if page_set is not null then
    select sum(p.item_count) into sent.item_count
    from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set;
  end if;
  if sent.item_count <= max_components then
    items := replace_components(sent.digest, sent.source, page_set, rows);
  end if;
  -- The refusal of a set that is too large deletes the set.
  perform drop_pages(sent, page_set);
  if items is null then
    return json_build_object('status', 'refused', 'reason', 'components', 'items', sent.item_count);
  end if;
  perform write_report(sent);
  perform link_report(sent);
  return json_build_object('status', 'stored', 'items', items);
end
$$;
