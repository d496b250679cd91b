-- Whether a package has a package URL that was decided on: the same type, namespace and name; the same version, if the
-- decided one has a version; and each qualifier that the decided one has (docs/contract.md#decisions). Null without a
-- package URL.
create or replace function purl_matches(decided text, purl text) returns boolean
language plpgsql immutable strict parallel safe
as $$
declare
  d text[] := purl_parts(decided);
  f text[] := purl_parts(purl);
begin
  return d[1] = f[1] and (d[2] is null or d[2] is not distinct from f[2])
         and (d[3] = '' or string_to_array(d[3], '&') <@ string_to_array(f[3], '&'));
end
$$;
