-- no-transaction: The index before it serves the look-ups of this one.
drop index concurrently if exists traffic_by_rule;
