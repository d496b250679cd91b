-- no-transaction: rows by the transaction that wrote them. The type xid8 has no operator class for BRIN.
create index concurrently if not exists traffic_by_tx on traffic using brin ((tx::text::bigint))
  with (pages_per_range = 32, autosummarize = on);
