-- Deletes the results of images that the caller found in neither inventory nor containers; returns how many. It checks
-- again with the rows locked: a report that arrived meanwhile is seen, a later post waits and inserts a new row.
create or replace function delete_attestations(digests text[]) returns integer
language plpgsql
as $$
declare
  locked text[];
  removed integer;
begin
  locked := array(
    select a.digest from image_attestation a where a.digest = any (digests) order by a.digest for update skip locked);
  delete from image_attestation a
  where a.digest = any (locked)
    and (select 1 from image m where m.digest = a.digest limit 1) is null
    and (select 1 from workload_container w where w.image_digest = a.digest limit 1) is null;
  get diagnostics removed = row_count;
  return removed;
end
$$;
