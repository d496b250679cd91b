-- Writes packs of hours, and deletes the rows and packs that they replace, except for hours whose minutes or packs have
-- changed since they were read. `doc` has `hours` with the revisions of their packs and the number of their minutes as
-- read, and the times of rows of five minutes that are packed; and new packs of `minutes` and of `folded` rows. Minutes
-- are only added while nobody else packs, so that the same number of them are the same. Returns the number of minutes
-- that were packed or rolled up.
create or replace function compute_write_packs(doc json) returns bigint
language plpgsql strict
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict error
declare
  written bigint;
begin
  with hours as materialized (
    select s.container_id, s.hour, s.is_rolled_up, s.folded_times, l.line
    from (select f.folded_until as line from compute_fold f) l
    cross join json_to_recordset(doc -> 'hours')
      as s(container_id bigint, hour timestamp, is_rolled_up boolean, packs text, minutes bigint,
           folded_times timestamp[])
    cross join lateral (
      select count(*) as minutes from compute_minute m
      where m.container_id = s.container_id and m.ts >= s.hour and m.ts < s.hour + interval '1 hour'
        and (m.ts >= l.line or m.is_late)) n
    where n.minutes = s.minutes and s.packs = compute_packs_of(s.container_id, s.hour)),
  minutes as (
    insert into compute_minute_pack (container_id, ts, resolution_secs, revision, seconds, data)
    select h.container_id, h.hour, s.resolution_secs, nextval('compute_history_id'), s.seconds, decode(s.data, 'base64')
    from json_to_recordset(doc -> 'minutes')
      as s(container_id bigint, hour timestamp, resolution_secs bigint, seconds smallint[], data text)
    join hours h on h.container_id = s.container_id and h.hour = s.hour
    on conflict (container_id, ts, resolution_secs) do update set
      revision = excluded.revision, seconds = excluded.seconds, data = excluded.data),
  folded as (
    insert into compute_folded_pack (container_id, ts, resolution_secs, revision, seconds, data, minute_keys)
    select h.container_id, h.hour, 300, nextval('compute_history_id'), s.seconds, decode(s.data, 'base64'),
           s.minute_keys
    from json_to_recordset(doc -> 'folded')
      as s(container_id bigint, hour timestamp, seconds smallint[], data text, minute_keys integer[])
    join hours h on h.container_id = s.container_id and h.hour = s.hour
    on conflict (container_id, ts, resolution_secs) do update set
      revision = excluded.revision, seconds = excluded.seconds, data = excluded.data,
      minute_keys = excluded.minute_keys),
  rolled_up as (
    delete from compute_minute_pack k
    using hours h
    where h.is_rolled_up and k.container_id = h.container_id and k.ts = h.hour
    returning cardinality(k.seconds) as minutes),
  packed as (
    delete from compute_minute m
    using hours h
    where m.container_id = h.container_id and m.ts >= h.hour and m.ts < h.hour + interval '1 hour'
      and (m.ts >= h.line or m.is_late)
    returning 1),
  moved as (
    delete from compute_folded f
    using hours h
    cross join unnest(h.folded_times) t(ts)
    where f.container_id = h.container_id and f.ts = t.ts and f.resolution_secs = 300)
  select (select count(*) from packed p) + (select coalesce(sum(r.minutes), 0) from rolled_up r) into written;
  return written;
end
$$;
