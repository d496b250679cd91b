-- The tag in the reference that a container writes; empty without one. The port of a registry is none.
create or replace function written_tag(reference text) returns text
language sql immutable parallel safe
as $$
  select split_part(regexp_replace(split_part(reference, '@', 1), '^.*/', ''), ':', 2)
$$;
