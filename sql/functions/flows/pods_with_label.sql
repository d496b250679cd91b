-- The pods for which labels with these were recorded, at any time. Only a bitmap scan reads the index of labels.
create or replace function pods_with_label(of_label jsonb) returns table (pod_namespace text, pod_name text)
language sql stable parallel safe rows 100
set enable_bitmapscan = on
as $$
  select distinct l.pod_namespace, l.pod_name from pod_labels l where l.labels @> of_label
$$;
