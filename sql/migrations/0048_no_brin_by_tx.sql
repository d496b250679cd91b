-- no-transaction: The index traffic_in_order_of_writing also serves the look-ups of traffic_by_tx.
drop index concurrently if exists traffic_by_tx;
