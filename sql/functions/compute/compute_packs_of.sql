-- The revisions of the packs that a container has of an hour, by their lengths; null if there are none.
create or replace function compute_packs_of(of_container bigint, of_hour timestamp) returns text
language plpgsql stable
set enable_seqscan = off
as $$
#variable_conflict error
begin
  return (
    select string_agg(concat_ws(' ', p.resolution_secs, p.revision), ',' order by p.resolution_secs)
    from (
      select k.resolution_secs, k.revision from compute_minute_pack k
      where k.container_id = of_container and k.ts = of_hour
      union all
      select k.resolution_secs, k.revision from compute_folded_pack k
      where k.container_id = of_container and k.ts = of_hour) p);
end
$$;
