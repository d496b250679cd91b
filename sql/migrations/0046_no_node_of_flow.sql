-- `pod_labels` has the node of a flow's pod by time, also for peers. No release wrote this column.
-- squawk-ignore ban-drop-column
alter table traffic drop column pod_node_name;
