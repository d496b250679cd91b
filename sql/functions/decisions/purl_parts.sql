-- A package URL as its name, its version (null without one) and its qualifiers, in the canonical form: the type, and
-- the names of some types, in lower case, and no escapes. https://github.com/package-url/purl-spec
create or replace function purl_parts(purl text) returns text[]
language plpgsql immutable strict parallel safe
as $$
declare
  body       text := split_part(purl, '#', 1);
  qualifiers text := split_part(body, '?', 2);
  version    text;
  kind       text;
begin
  body := ltrim(regexp_replace(split_part(body, '?', 1), '^pkg:', '', 'i'), '/');
  version := substring(body from '@([^@/]*)$');
  if version is not null then
    body := left(body, -length(version) - 1);
  end if;
  kind := lower(split_part(body, '/', 1));
  body := purl_decoded(substr(body, length(kind) + 1));
  if kind in ('alpm', 'apk', 'bitbucket', 'composer', 'deb', 'github', 'golang', 'hex', 'pypi') then
    body := lower(body);
  end if;
  if kind = 'pypi' then
    body := replace(body, '_', '-');
  end if;
  if strpos(qualifiers, '%') > 0 then
    qualifiers := (select string_agg(purl_decoded(q), '&') from unnest(string_to_array(qualifiers, '&')) q);
  end if;
  return array[kind || body, nullif(purl_decoded(version), ''), qualifiers];
end
$$;
