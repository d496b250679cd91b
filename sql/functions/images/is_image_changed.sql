-- Whether a report of an image differs from its row, or the row is due for a refresh. A row of nulls stands for no row.
create or replace function is_image_changed(m image, repository text, tags text[], digest_kind text) returns boolean
language sql stable parallel safe
as $$
  select m.digest is null
      or m.last_seen < now() at time zone 'utc' - interval '300 seconds'
      or m.repository is null and repository is not null
      or digest_kind_rank(digest_kind) > digest_kind_rank(m.digest_kind)
      or cardinality(m.tags) < 32 and not m.tags @> tags
$$;
