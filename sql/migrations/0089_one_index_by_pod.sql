-- no-transaction: workload_container_by_last_pod also serves the look-ups of this index.
drop index concurrently if exists workload_container_by_pod;
