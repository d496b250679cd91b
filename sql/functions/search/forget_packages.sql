-- Deletes entries that no payload has, among `max_entries` from a random one on, and from the first one on after the
-- last: all are examined where there are no more. Only the job adds and uses entries, one pass at a time.
create or replace function forget_packages(max_entries bigint) returns bigint
language sql strict
set enable_seqscan = off
as $$
  with start as materialized (
    -- Numbers are spread evenly over 64 bits.
    select ((random() - 0.5) * 1.8e19)::bigint as id),
  looked as materialized (
    select e.id
    from ((select e.id, 0 as turn from package_entry e where e.id >= (select s.id from start s)
           order by e.id limit max_entries)
          union all
          (select e.id, 1 from package_entry e where e.id < (select s.id from start s)
           order by e.id limit max_entries)) e
    order by e.turn, e.id
    limit max_entries),
  gone as (
    delete from package_entry e
    using looked l
    where e.id = l.id and not exists (select from payload_packages p where p.packages && array[l.id])
    returning 1)
  select count(*) from gone
$$;
