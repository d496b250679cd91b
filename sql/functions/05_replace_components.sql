-- Makes the components of an SBOM those of lists that follow one another; returns how many they are.
create or replace function replace_components(of_digest text, of_source text, lists text[]) returns bigint
language plpgsql
as $$
declare
  items bigint;
begin
  delete from image_component c where c.digest = of_digest and c.source = of_source;

  insert into image_component (digest, source, position, name, version, purl, type, class, src_name, src_version, licenses,
                               layer_digest, file_paths)
  select of_digest, of_source, row_number() over (order by l.n, c.n), c.name, c.version, c.purl, c.type, c.class, c.src_name,
         c.src_version, c.licenses, c.layer_digest, c.file_paths
  from unnest(lists) with ordinality l(list, n)
  cross join lateral rows from (json_to_recordset(l.list::json) as (
    name text, version text, purl text, type text, class text, src_name text, src_version text, licenses text[], layer_digest text,
    file_paths text[])) with ordinality c(name, version, purl, type, class, src_name, src_version, licenses, layer_digest, file_paths, n);
  get diagnostics items = row_count;
  return items;
end
$$;
