-- Whether a sighting tells of an image what its row does not say yet, or the row is due to be refreshed. A row of nulls is no row.
create or replace function is_image_news(m image, repository text, tags text[], digest_kind text) returns boolean
language sql stable parallel safe
as $$
  select m.digest is null
      or m.last_seen < now() at time zone 'utc' - interval '300 seconds'
      or m.repository is null and repository is not null
      or digest_kind_rank(digest_kind) > digest_kind_rank(m.digest_kind)
      or cardinality(m.tags) < 32 and not m.tags @> tags
$$;
