-- A package URL as its name, its version (null without one) and its qualifiers, with the escapes decoded that scanners
-- write differently. Null for other text. https://github.com/package-url/purl-spec
create or replace function purl_parts(purl text) returns text[]
language sql immutable parallel safe
as $$
  select array[decoded.parts[1], nullif(decoded.parts[2], ''), coalesce(m.parts[3], '')]
  from regexp_match(purl, '^pkg:/*([^?#]*?)(?:@([^@/?#]*))?(?:\?([^#]*))?(?:#.*)?$') m(parts)
  cross join lateral (
    select array_agg(replace(replace(replace(replace(replace(replace(replace(
             regexp_replace(p.part, '%([0-9a-fA-F]{2})', '%\1', 'g'),
             '%40', '@'), '%2B', '+'), '%2b', '+'), '%3A', ':'), '%3a', ':'), '%7E', '~'), '%7e', '~')
             order by p.n) as parts
    from unnest(m.parts[:2]) with ordinality p(part, n)) decoded
$$;
