-- Whether a sighting tells of a file what its row does not say yet, or the row is due to be written again (interop-profiling 2.3). A row of nulls
-- is no row.
create or replace function is_executable_news(e runtime_executable, path_complete boolean, source text, origin text, first_seen timestamp,
                                              last_seen timestamp) returns boolean
language sql immutable parallel safe
as $$
  select e.last_seen is null
      or last_seen >= e.last_seen + interval '300 seconds'
      or first_seen < e.first_seen
      or source = 'ebpf' and e.source <> 'ebpf'
      or path_complete and not e.path_complete
      or origin_rank(origin) > origin_rank(e.origin)
$$;
