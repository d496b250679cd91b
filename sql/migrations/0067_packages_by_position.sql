-- `is_in_order`: the packages are those of the components of an SBOM in their order, so that `GET /components` reads
-- only components that are asked for. False in all that is stored and in what the previous release still writes: the
-- job reads these SBOMs once more.
alter table payload_packages add column is_in_order boolean not null default false;

-- The tables have a row for each payload, so they are short.
delete from payload_packages where kind = 'sbom';
update image_report set packages_hash = null where kind = 'sbom' and packages_hash is not null;
