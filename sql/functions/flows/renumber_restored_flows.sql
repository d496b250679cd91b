-- A dump that was restored into another server brings the transactions of its flows along, and that server may be far
-- from such numbers: its next flows would seem counted. One step of the job `flow-edges` (docs/contract.md#flow-edges)
-- then gives at most `at_once` flows that were not counted a transaction of this server, and takes theirs from the
-- others, as from flows of before transactions were recorded; the last step sets the cursor to the first flow that was
-- stored here. Such a flow names a transaction behind the one that restored the first migration, and was written by
-- that or a later one, as when its drop cause became known. The caller holds the lock of the job. Returns how many
-- flows were changed.
create or replace function renumber_restored_flows(at_once int) returns bigint
language sql strict
set enable_seqscan = off
as $$
  with now as materialized (
    select c.next_tx, pg_snapshot_xmin(s.snapshot) as xmin, x.xmax,
           -- of the 64 bits of its number a row has 32
           (x.xmax::text::bigint - ((x.xmax::text::bigint - m.xmin::text::bigint) & 4294967295))::text::xid8
             as restored_tx
    from flow_edge_cursor c
    cross join (select pg_current_snapshot() as snapshot) s
    cross join lateral (select pg_snapshot_xmax(s.snapshot) as xmax) x
    cross join (select m.xmin from schema_migration m order by m.version limit 1) m
    where c.next_tx > x.xmax),
  found as materialized (
    select t.time_stamp, t.uuid, coalesce(t.first_tx, t.tx) >= n.next_tx as is_new
    from now n
    cross join lateral (
      select t.time_stamp, t.uuid, t.tx, t.first_tx from traffic t
      where t.tx >= n.xmax order by t.tx desc limit at_once) t),
  renumbered as (
    update traffic t set tx = case when f.is_new then pg_current_xact_id() end, first_tx = null
    from found f
    where t.time_stamp = f.time_stamp and t.uuid = f.uuid),
  last_step as materialized (
    select n.xmax, least(n.xmin, w.tx, f.first_tx) as next_tx
    from now n
    left join lateral (
      select t.tx from traffic t
      where t.tx > n.restored_tx and t.tx < n.xmax
        and (t.xmin::text::bigint - t.tx::text::bigint) & 4294967295 < 2147483648
      order by t.tx limit 1) w on true
    left join lateral (
      select t.first_tx from traffic t
      where t.first_tx is not null and t.first_tx > n.restored_tx and t.first_tx < n.xmax and t.tx < n.xmax
        and (t.xmin::text::bigint - t.tx::text::bigint) & 4294967295 < 2147483648
      order by t.first_tx limit 1) f on true
    where (select count(*) from found) < at_once),
  other as (
    update traffic t set tx = null, first_tx = null
    from last_step l
    where t.tx >= l.next_tx and t.tx < l.xmax
      and (t.xmin::text::bigint - t.tx::text::bigint) & 4294967295 >= 2147483648),
  moved as (
    update flow_edge_cursor c set next_tx = l.next_tx, looked_tx = null, looked_at = null
    from last_step l)
  select count(*) from found
$$;
