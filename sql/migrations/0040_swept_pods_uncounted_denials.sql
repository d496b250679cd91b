-- `swept_at` is when the sweep marked the pod dead, because no agent posted it any more. It is null where the
-- sweep never did, or where an agent reported the end of the pod later. A new post does not change it.
alter table pod add column swept_at timestamp;

-- `uncounted` has the denials of a row that the metric does not count yet, because their workload was unknown when they
-- arrived. The replica that sets it to 0 counts them.
alter table seccomp_denial add column uncounted bigint not null default 0;
update seccomp_denial set uncounted = count where workload_kind is null or workload_name is null;
