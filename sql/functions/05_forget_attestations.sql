-- Deletes the results of these images, of which the caller saw neither an image nor a container, and answers how many. It looks again with
-- their rows locked: what was posted since is seen then, and what is posted later waits and makes a row of its own.
create or replace function forget_attestations(digests text[]) returns integer
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
