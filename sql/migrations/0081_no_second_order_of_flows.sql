-- no-transaction: The key of flows has their order, too.
drop index concurrently if exists traffic_newest;
