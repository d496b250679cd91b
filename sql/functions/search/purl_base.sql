-- A package URL without version, qualifiers and subpath.
create or replace function purl_base(purl text) returns text
language sql immutable parallel safe
as $$
  select without_version(purl_plain(purl))
$$;
