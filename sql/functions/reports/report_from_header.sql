-- The row of a posted header.
create or replace function report_from_header(header json, of_kind text) returns image_report
language plpgsql stable
as $$
declare
  sent image_report := json_populate_record(null::image_report, header);
begin
  sent.kind := of_kind;
  sent.received_at := now() at time zone 'utc';
  sent.manifest_digests := array(
    select m.value from jsonb_each_text(sent.platform_manifests) m
    union
    select sent.index_digest where sent.index_digest is not null
    order by 1);
  return sent;
end
$$;
