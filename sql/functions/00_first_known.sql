-- The first value that is not null, in the order of the call. Made with array_agg() it would take ten times as long.
create or replace function keep_first(kept anyelement, other anyelement) returns anyelement
language plpgsql immutable strict parallel safe
as $$ begin return kept; end $$;

create or replace aggregate first_known(anyelement) (sfunc = keep_first, stype = anyelement, parallel = safe);
