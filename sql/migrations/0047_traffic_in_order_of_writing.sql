-- no-transaction: Followers read flows in the order in which they were written. A btree index gives this order, while
-- the ranges of a BRIN index overlap as soon as new rows fill the room of deleted ones. The entries of one transaction
-- share their key, so the index is small, and it grows at its end only.
create index concurrently if not exists traffic_in_order_of_writing on traffic (tx);
