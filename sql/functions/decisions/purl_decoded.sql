-- A part of a package URL with the escapes of printable ASCII characters decoded: scanners differ in what they escape.
-- Other escapes are in upper case.
create or replace function purl_decoded(part text) returns text
language sql immutable strict parallel safe
as $$
  select case when strpos(part, '%') = 0 then part else (
    select string_agg(case when upper(r.m[1]) ~ '^%([2-6][0-9A-F]|7[0-9A-E])$'
                           then chr(('x' || substr(r.m[1], 2))::bit(8)::integer)
                           when r.m[1] ~ '^%..$' then upper(r.m[1])
                           else r.m[1] end, '' order by r.nth)
    from regexp_matches(part, '%[0-9A-Fa-f]{2}|[^%]+|%', 'g') with ordinality as r(m, nth)) end
$$;
