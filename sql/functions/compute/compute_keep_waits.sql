-- Moves waits of earlier hours to compute_contention_kept: of each of the next containers those of its first hour. An
-- answer has the 50 longest waits of a victim from some time until now (docs/contract.md#compute). So a wait that 50
-- longer ones of the same victim follow is in no answer, and is deleted; the same holds for waits that were kept before.
-- Only later ones by a step of time are compared, so that one sort of the waits of a victim suffices. `last_id`: where
-- to continue, null at the end.
create or replace function compute_keep_waits(after_id bigint, until_ts timestamp, looked bigint)
returns table (moved bigint, hours bigint, last_id bigint)
language plpgsql strict
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_mergejoin = off
set work_mem = '64MB'
as $$
#variable_conflict error
declare
  most constant integer := 50;
begin
  return query
    with batch as materialized (
      select c.id from compute_container c where c.id > after_id order by c.id limit looked),
    due as materialized (
      select b.id as victim_id, h.hour
      from batch b
      cross join lateral (
        select date_trunc('hour', min(p.ts)) as hour from compute_contention p
        where p.victim_id = b.id and p.ts < until_ts) h
      where h.hour is not null),
    taken as (
      delete from compute_contention p
      using due d
      where p.victim_id = d.victim_id and p.ts >= d.hour and p.ts < least(d.hour + interval '1 hour', until_ts)
      returning p.*),
    waits as (
      select d.hour, t.victim_id, t.ts, t.id, t.wait_ns, false as is_kept
      from taken t join due d on d.victim_id = t.victim_id
      union all
      select d.hour, k.victim_id, k.ts, k.id, k.wait_ns, true
      from due d
      cross join lateral (
        select k.victim_id, k.ts, k.id, k.wait_ns from compute_contention_kept k
        where k.victim_id = d.victim_id and k.ts >= d.hour - interval '1 day' and k.ts < d.hour + interval '1 hour'
        offset 0) k),
    ranked as materialized (
      select w.victim_id, w.ts, w.id, w.is_kept,
             case
               when w.ts < w.hour - interval '23 hours'
                 then count(*) filter (where w.ts >= w.hour - interval '23 hours') over longer
               when w.ts < w.hour - interval '5 hours'
                 then count(*) filter (where w.ts >= w.hour - interval '5 hours') over longer
               when w.ts < w.hour then count(*) filter (where w.ts >= w.hour) over longer
               when w.ts < w.hour + interval '10 min'
                 then count(*) filter (where w.ts >= w.hour + interval '10 min') over longer
               when w.ts < w.hour + interval '20 min'
                 then count(*) filter (where w.ts >= w.hour + interval '20 min') over longer
               when w.ts < w.hour + interval '30 min'
                 then count(*) filter (where w.ts >= w.hour + interval '30 min') over longer
               when w.ts < w.hour + interval '40 min'
                 then count(*) filter (where w.ts >= w.hour + interval '40 min') over longer
               when w.ts < w.hour + interval '50 min'
                 then count(*) filter (where w.ts >= w.hour + interval '50 min') over longer
               else 0
             end >= most as is_hidden
      from waits w
      window longer as (partition by w.victim_id order by w.wait_ns desc, w.id desc
                        rows between unbounded preceding and 1 preceding)),
    kept as (
      insert into compute_contention_kept
      select t.* from ranked r join taken t on t.victim_id = r.victim_id and t.ts = r.ts and t.id = r.id
      where not r.is_kept and not r.is_hidden),
    forgotten as (
      delete from compute_contention_kept k
      using ranked r
      where r.is_kept and r.is_hidden and k.victim_id = r.victim_id and k.ts = r.ts and k.id = r.id)
    select (select count(*) from taken), (select count(*) from due), (select max(b.id) from batch b);
end
$$;
