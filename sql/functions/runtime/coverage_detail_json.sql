-- The JSON of a `reasonDetail` (docs/contract.md#reason-details), without blanks.
create or replace function coverage_detail_json(cause text, container_id text, pod text, node text, at timestamp)
returns json
language sql stable parallel safe
as $$
  select concat('{"cause":', to_json(cause),
                ',"containerId":', coalesce(to_json(container_id), 'null'),
                ',"podName":', coalesce(to_json(pod), 'null'),
                ',"nodeName":', coalesce(to_json(node), 'null'),
                ',"at":', coalesce(to_json(wire_time(at)), 'null'), '}')::json
$$;
