-- Whether a report of an executable differs from its row, or the row is due for a refresh. A row of nulls stands for no
-- row.
create or replace function is_executable_changed(
  stored_path_complete boolean, stored_source text, stored_origin text, stored_first_seen timestamp,
  stored_last_seen timestamp,
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
