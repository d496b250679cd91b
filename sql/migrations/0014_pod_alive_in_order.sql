-- no-transaction: The list of live pods in its order, which PostgreSQL would otherwise sort.
create index concurrently if not exists pod_alive_in_order on pod (pod_namespace, pod_name) where not is_dead;
