-- no-transaction: A list of the whole cluster has the files that no image shipped, newest first. The index has the
-- first time that a file was seen, which hardly ever changes, so that a newer sighting leaves it alone (HOT updates).
create index concurrently if not exists runtime_executable_unshipped_newest
  on runtime_executable (first_seen, path_hash)
  where origin in ('deleted', 'writableLayer', 'memfd');
