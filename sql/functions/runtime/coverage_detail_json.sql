-- The JSON of a `reasonDetail` (docs/contract.md#reason-details).
create or replace function coverage_detail_json(cause text, container_id text, pod text, node text, at timestamp)
returns json
language sql stable parallel safe
as $$
  select json_build_object('cause', cause, 'containerId', container_id, 'podName', pod, 'nodeName', node,
                           'at', wire_time(at))
$$;
