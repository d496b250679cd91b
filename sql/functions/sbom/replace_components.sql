-- Replaces the components of an SBOM with those of a list, or with the pages of a set, one page in memory at a time;
-- returns how many there are.
create or replace function replace_components(of_digest text, of_source text, page_set text, rows text) returns bigint
language plpgsql
as $$
declare
  items bigint := 0;
  more  bigint;
  list  text;
begin
  delete from image_component c where c.digest = of_digest and c.source = of_source;

  for list in
    select l.components
    from (select 0 as page_index, rows as components where page_set is null
          union all
          select p.page_index, p.components
          from sbom_page p where p.digest = of_digest and p.source = of_source and p.set_id = page_set) l
    order by l.page_index
  loop
    insert into image_component (digest, source, position, name, version, purl, type, class, src_name, src_version,
                                 licenses,
                                 layer_digest, file_paths)
    select of_digest, of_source, items + c.n, c.name, c.version, c.purl, c.type, c.class, c.src_name, c.src_version,
           c.licenses,
           c.layer_digest, c.file_paths
    from rows from (json_to_recordset(list::json) as (
      name text, version text, purl text, type text, class text, src_name text, src_version text, licenses text[],
      layer_digest text,
      file_paths text[])) with ordinality c(name, version, purl, type, class, src_name, src_version, licenses,
                                            layer_digest, file_paths, n);
    get diagnostics more = row_count;
    items := items + more;
  end loop;
  return items;
end
$$;
