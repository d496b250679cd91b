-- Whether a sighting tells of a file what its row does not say yet, or the row is due to be written again (interop-profiling 2.3). A row of nulls
-- is no row.
create or replace function is_executable_news(
  stored_path_complete boolean, stored_source text, stored_origin text, stored_first_seen timestamp, stored_last_seen timestamp,
  path_complete boolean, source text, origin text, first_seen timestamp, last_seen timestamp) returns boolean
language sql immutable parallel safe
as $$
  select stored_last_seen is null
      or last_seen >= stored_last_seen + interval '300 seconds'
      or first_seen < stored_first_seen
      or source = 'ebpf' and stored_source <> 'ebpf'
      or path_complete and not stored_path_complete
      or origin_rank(origin) > origin_rank(stored_origin)
$$;
