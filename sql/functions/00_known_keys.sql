-- Objects as one: of a key that several have, the value of the first in the order of the call.
create or replace function keep_keys(kept jsonb, other jsonb) returns jsonb
language plpgsql immutable strict parallel safe
as $$ begin return other || kept; end $$;

create or replace aggregate known_keys(jsonb) (sfunc = keep_keys, stype = jsonb, parallel = safe);
