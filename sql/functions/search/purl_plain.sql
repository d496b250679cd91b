-- A package URL without qualifiers and subpath.
create or replace function purl_plain(purl text) returns text
language sql immutable parallel safe
as $$
  select split_part(split_part(purl_text(purl), '#', 1), '?', 1)
$$;
