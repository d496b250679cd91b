-- no-transaction: `GET /flows` looks up the pods that ran on a node.
create index concurrently if not exists pod_labels_by_node on pod_labels (node_name);
