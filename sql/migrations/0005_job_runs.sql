-- A row records when a job last completed, so that replicas and restarts agree on when it is due.
create table job_run (
  job         text collate "C" primary key,
  finished_at timestamp not null,
  duration_ms bigint not null,
  rows        bigint not null
) with (fillfactor = 50);
