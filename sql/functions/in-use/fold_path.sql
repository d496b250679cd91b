-- An absolute path without empty, `.` and `..` parts, as `realpath -s` would write it.
create or replace function fold_path(path text) returns text
language plpgsql immutable parallel safe
as $$
declare
  part  text;
  parts text[] := '{}';
begin
  foreach part in array string_to_array(btrim(path), '/') loop
    if part = '..' then
      parts := trim_array(parts, least(cardinality(parts), 1));
    elsif part not in ('', '.') then
      parts := parts || part;
    end if;
  end loop;
  return '/' || array_to_string(parts, '/');
end
$$;
