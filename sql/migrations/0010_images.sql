-- Containers of posted pods name these images. A row is rewritten at most every 300 seconds unless it changes, and no
-- index has its times, so that PostgreSQL leaves the indexes alone (HOT updates).
create table image (
  digest      text collate "C" primary key,
  repository  text collate "C",
  tags        text[] not null,
  digest_kind text collate "C" not null check (digest_kind in ('pinned', 'config', 'repo')),
  first_seen  timestamp not null,
  last_seen   timestamp not null
) with (fillfactor = 80);

create index image_by_repository on image (repository, digest);
