-- no-transaction: The order of flows in lists, and their key from 0080 on, which has to be in ascending order.
create unique index concurrently if not exists traffic_by_time on traffic (time_stamp, uuid);
