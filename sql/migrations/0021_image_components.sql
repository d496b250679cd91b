-- `image_component` has the components of SBOMs in the order of their payload, `sbom_page` the pages of SBOMs that are
-- still incomplete.
create table image_component (
  digest       text collate "C" not null,
  source       text collate "C" not null,
  position     bigint not null,
  name         text not null,
  version      text,
  purl         text,
  type         text,
  class        text,
  src_name     text,
  src_version  text,
  licenses     text[] not null,
  layer_digest text,
  file_paths   text[] not null,
  primary key (digest, source, position)
);

-- `components` is a JSON array as text, because it is read only once, when the set is complete.
create table sbom_page (
  digest      text collate "C" not null,
  source      text collate "C" not null,
  set_id      text collate "C" not null,
  page_index  bigint not null,
  total       bigint not null,
  scanned_at  timestamp not null,
  item_count  bigint not null,
  components  text not null,
  post        text collate "C" not null,
  received_at timestamp not null,
  primary key (digest, source, set_id, page_index)
) with (fillfactor = 80);
