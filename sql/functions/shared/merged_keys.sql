-- Merges objects; the first object in the order of the call wins where a key repeats.
create or replace function merge_keys(kept jsonb, other jsonb) returns jsonb
language plpgsql immutable strict parallel safe
as $$ begin return other || kept; end $$;

create or replace aggregate merged_keys(jsonb) (sfunc = merge_keys, stype = jsonb, parallel = safe);
