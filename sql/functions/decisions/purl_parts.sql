-- A package URL as its name, its version (null without one) and its qualifiers, with the escapes decoded that scanners
-- write differently. https://github.com/package-url/purl-spec
create or replace function purl_parts(purl text) returns text[]
language plpgsql immutable strict parallel safe
as $$
declare
  body       text := split_part(purl, '#', 1);
  qualifiers text := split_part(body, '?', 2);
  version    text;
begin
  body := split_part(body, '?', 1);
  version := substring(body from '@([^@/]*)$');
  if version is not null then
    body := left(body, -length(version) - 1);
  end if;
  if strpos(purl, '%') > 0 then
    body := replace(replace(replace(replace(body, '%40', '@'), '%2B', '+'), '%2b', '+'), '%7E', '~');
    version := replace(replace(replace(replace(replace(replace(version,
      '%3A', ':'), '%3a', ':'), '%2B', '+'), '%2b', '+'), '%7E', '~'), '%7e', '~');
  end if;
  return array[body, nullif(version, ''), qualifiers];
end
$$;
