-- A row joins the payloads of a digest and source to an image of the inventory (docs/contract.md#joins). `join_rank` is
-- 1 for image_id, 2 for platform_manifest and 3 for workload_tag.
create table image_link (
  digest       text collate "C" not null,
  source       text collate "C" not null,
  image_digest text collate "C" not null,
  join_rank    smallint not null check (join_rank between 1 and 3),
  linked_at    timestamp not null,
  primary key (digest, source, image_digest)
);

create index image_link_by_image on image_link (image_digest, join_rank);
