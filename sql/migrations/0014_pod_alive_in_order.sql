-- no-transaction: The list of live pods has this order. PostgreSQL would otherwise sort it.
create index concurrently if not exists pod_alive_in_order on pod (pod_namespace, pod_name) where not is_dead;
