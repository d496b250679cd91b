-- Whether a package has a package URL that was decided on: the same type, namespace and name; the same version, if the
-- decided one has a version; and each qualifier that the decided one has (docs/contract.md#decisions). Null without a
-- package URL.
create or replace function purl_matches(decided text, found text) returns boolean
language sql immutable parallel safe
as $$
  select d.parts[1] = f.parts[1] and (d.parts[2] is null or d.parts[2] is not distinct from f.parts[2])
         and (d.parts[3] = '' or string_to_array(d.parts[3], '&') <@ string_to_array(f.parts[3], '&'))
  from (select purl_parts(decided) as parts offset 0) d
  cross join (select purl_parts(found) as parts offset 0) f
$$;
