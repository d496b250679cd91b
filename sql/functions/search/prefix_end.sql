-- Comes after all texts that begin with this one, in the order of bytes. No stored text is longer than 256 of the last
-- character.
create or replace function prefix_end(beginning text) returns text
language sql immutable parallel safe
as $$
  select beginning || repeat(chr(1114111), 256)
$$;
