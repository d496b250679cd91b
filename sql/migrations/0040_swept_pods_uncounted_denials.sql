-- What is told later than it happened: that a pod was marked dead because nobody posted it any more, and whose denials they were.
-- Null where it never was: nobody said that such a pod ended.
alter table pod add column swept_at timestamp;

-- Denials of a row that no counter has yet, since their workload was not known when they came. Whoever sets it back counts them.
alter table seccomp_denial add column uncounted bigint not null default 0;
update seccomp_denial set uncounted = count where workload_kind is null or workload_name is null;
