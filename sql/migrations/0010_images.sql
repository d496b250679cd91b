-- Images by digest, as the containers of posted pods name them. Refreshed at most every 300 seconds; no index touches the time.
create table image (
  digest      text collate "C" primary key,
  repository  text collate "C",
  tags        text[] not null,
  digest_kind text collate "C" not null check (digest_kind in ('pinned', 'config', 'repo')),
  first_seen  timestamp not null,
  last_seen   timestamp not null
) with (fillfactor = 80);

create index image_by_repository on image (repository, digest);
