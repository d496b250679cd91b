-- The length and revision of each pack that a container has of an hour, in byte order; empty if there are none.
create or replace function compute_packs_of(of_container bigint, of_hour timestamp) returns text
language plpgsql stable
set enable_seqscan = off
as $$
#variable_conflict error
begin
  return (
    select coalesce(string_agg(p.pack, ',' order by p.pack collate "C"), '')
    from (
      select concat_ws(' ', k.resolution_secs, k.revision) as pack from compute_minute_pack k
      where k.container_id = of_container and k.ts = of_hour
      union all
      select concat_ws(' ', k.resolution_secs, k.revision) from compute_folded_pack k
      where k.container_id = of_container and k.ts = of_hour) p);
end
$$;
