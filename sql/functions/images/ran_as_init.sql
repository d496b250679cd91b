-- Whether a container did its work before the others started.
create or replace function ran_as_init(container_kind text, state text) returns boolean
language sql immutable parallel safe
as $$ select container_kind = 'init' and state is not distinct from 'terminated' $$;
