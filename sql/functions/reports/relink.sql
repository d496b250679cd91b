-- Updates the links of the payloads of a digest and source; returns how many rows changed. An image linked by digest
-- loses its links by tag. The caller holds the lock of all links.
create or replace function relink(of_digest text, of_source text) returns integer
language plpgsql
as $$
declare
  wanted  image_link[];
  changed integer;
  rows    integer;
begin
  wanted := array(
    select row(of_digest, of_source, w.image_digest, w.join_rank, now() at time zone 'utc')::image_link
    from expected_links(of_digest, of_source) w);
  perform request_recount(array(
    select coalesce(w.image_digest, l.image_digest)
    from unnest(wanted) w
    full join (select l.* from image_link l where l.digest = of_digest and l.source = of_source) l
      on l.image_digest = w.image_digest
    where w.join_rank is distinct from l.join_rank));

  delete from image_link l
  where l.digest = of_digest and l.source = of_source
    and not exists (select from unnest(wanted) w where w.image_digest = l.image_digest and w.join_rank = l.join_rank);
  get diagnostics changed = row_count;

  insert into image_link select w.* from unnest(wanted) w on conflict do nothing;
  get diagnostics rows = row_count;
  changed := changed + rows;

  delete from image_link g
  using unnest(wanted) w
  where w.join_rank < 3 and g.image_digest = w.image_digest and g.join_rank = 3;
  get diagnostics rows = row_count;
  return changed + rows;
end
$$;
