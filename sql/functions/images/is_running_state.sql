-- Whether a container in this state runs its image; a state that is not known counts.
create or replace function is_running_state(state text, reason text) returns boolean
language sql immutable parallel safe
as $$
  select state is null or state = 'running' or state = 'waiting' and reason is not distinct from 'CrashLoopBackOff'
$$;
