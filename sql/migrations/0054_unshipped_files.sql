-- no-transaction: Profiles look for files that an image did not ship, which are few among all that ran. The index has
-- no time, so that a newer sighting leaves it alone (HOT updates).
create index concurrently if not exists runtime_executable_unshipped
  on runtime_executable (pod_namespace, workload_kind, workload_name, container_name, image_digest)
  where origin in ('deleted', 'writableLayer', 'memfd');
