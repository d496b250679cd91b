-- The tag in an image reference as a container writes it; empty if there is none. The port of a registry is not a tag.
create or replace function tag_of_reference(reference text) returns text
language sql immutable parallel safe
as $$
  select split_part(regexp_replace(split_part(reference, '@', 1), '^.*/', ''), ':', 2)
$$;
