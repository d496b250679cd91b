-- Whether a container runs the image (docs/contract.md#images).
create or replace function image_runs(asked text, window_secs integer) returns boolean
language sql stable parallel safe
as $$
  select exists (select from workload_container w where w.image_digest = asked and is_running(w, window_secs))
$$;
