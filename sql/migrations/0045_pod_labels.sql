-- A flow query asks for the labels and the node that a pod had at the time of a flow, and `pod` has only the latest
-- ones. A row holds from `since` on, until the next row of the same pod (docs/contract.md#flow-queries).
create table pod_labels (
  pod_namespace text collate "C",
  pod_name      text collate "C",
  since         timestamp,
  labels        jsonb not null,
  node_name     text collate "C" not null,
  primary key (pod_namespace, pod_name, since)
);

create index pod_labels_by_label on pod_labels using gin (labels jsonb_path_ops);

-- A hash of the labels that `pod_labels` has as the latest; null if none are recorded. Zeros make the next post record
-- them.
alter table pod add column labels_hash uuid;
