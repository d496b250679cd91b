-- Keeps a page of an incomplete SBOM. Null if it was the last missing page and the set can be stored. The limits are
-- cluster-wide, so new sets are admitted one at a time. The caller holds the lock of the SBOM.
create or replace function stage_page(sent image_report, page_set text, page_no bigint, pages bigint,
                                      rows text) returns json
language plpgsql
as $$
declare
  max_sets  constant integer := 64;
  max_bytes constant bigint  := 256 * 1024 * 1024;
  newer     timestamp;
  held      sbom_page;
  received  bigint;
begin
  select max(p.scanned_at) into newer
  from sbom_page p
  where p.digest = sent.digest and p.source = sent.source and p.set_id <> page_set and p.scanned_at >= sent.scanned_at;
  if newer is not null then
    return json_build_object('status', 'stale', 'stored_scanned_at', newer);
  end if;

  select * into held from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set
         limit 1;
  if held.total <> pages then
    return json_build_object('status', 'refused', 'reason', 'total', 'total', held.total);
  end if;

  if held.set_id is null then
    perform pg_advisory_xact_lock(x'70616765'::integer, 0);
    if (select count(distinct (p.digest, p.source, p.set_id)) >= max_sets
        or sum(pg_column_size(p.components)) >= max_bytes
        from sbom_page p
        where (p.digest, p.source) is distinct from (sent.digest, sent.source)) then
      return json_build_object('status', 'refused', 'reason', 'ceiling');
    end if;
  end if;

  update sbom_page p set received_at = sent.received_at
  where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set and p.page_index = page_no
  returning * into held;
  if found then
    select count(*) into received
    from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set;
    return json_build_object('status', case when held.post = sent.post then 'staged' else 'duplicate_page' end,
                             'received', received, 'total', pages);
  end if;
  if rows is null then
    return json_build_object('status', 'rows wanted');
  end if;

  -- Only an admitted set replaces the previous one: the client may still be refused, or never return.
  delete from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id <> page_set;
  insert into sbom_page (digest, source, set_id, page_index, total, scanned_at, item_count, components, post,
                         received_at)
  values (sent.digest, sent.source, page_set, page_no, pages, sent.scanned_at, sent.item_count, rows, sent.post,
          sent.received_at);
  select count(*) into received
  from sbom_page p where p.digest = sent.digest and p.source = sent.source and p.set_id = page_set;
  if received < pages then
    return json_build_object('status', 'staged', 'received', received, 'total', pages);
  end if;
  return null;
end
$$;
