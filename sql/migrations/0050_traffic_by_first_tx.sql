-- no-transaction: The job `flow-edges` finds a flow by the transaction that inserted it, also after it was
-- written again.
create index concurrently if not exists traffic_by_first_tx on traffic (first_tx) where first_tx is not null;
