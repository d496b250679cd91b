-- A package URL in the form in which package URLs are compared (docs/contract.md#search): in lower case (A to Z), with
-- the characters that packages have in their names and versions not escaped. Only expressions, so that it is inlined.
create or replace function purl_text(purl text) returns text
language sql immutable parallel safe
as $$
  select case when strpos(purl, '%') = 0 then lower(purl collate "C")
              else replace(replace(replace(replace(lower(purl collate "C"), '%40', '@'), '%2b', '+'), '%3a', ':'),
                           '%7e', '~') end
$$;
