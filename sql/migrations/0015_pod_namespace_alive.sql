-- no-transaction: The index pod_alive_in_order also serves the look-ups of pod_namespace_alive.
drop index concurrently if exists pod_namespace_alive;
