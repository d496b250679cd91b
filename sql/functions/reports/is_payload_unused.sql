-- Whether the payloads of a digest and source may be deleted (docs/contract.md#retention): none was posted within the
-- grace period, and no image that they describe runs or was reported within the retention days.
create or replace function is_payload_unused(of_digest text, of_source text, days integer, grace_hours integer,
                                             window_secs integer)
returns boolean
language sql stable parallel safe
as $$
  select not exists (
      select from image_report r
      where r.digest = of_digest and r.source = of_source
        and r.received_at >= now() at time zone 'utc' - make_interval(hours => grace_hours))
    and not exists (
      select from image_link l join workload_container w on w.image_digest = l.image_digest
      where l.digest = of_digest and l.source = of_source
        and (w.last_seen >= now() at time zone 'utc' - make_interval(days => days) or is_running(w, window_secs)))
$$;
