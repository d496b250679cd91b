-- Edges do not know the addresses of pods and services. A filter of flows by address or node looks them up here instead
-- of reading all flows (docs/contract.md#flow-queries): each address that a counted flow names, on either side, with
-- its pod or service, or with a pod on the network of its node; '' where namespace or name are not known. `kind` is as
-- in `peer_kind`.
create table flow_address (
  namespace    text collate "C",
  name         text collate "C",
  kind         text collate "C",
  address      text collate "C",
  last_flow_at timestamp not null,
  primary key (namespace, name, kind, address)
) with (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);

create index flow_address_by_address on flow_address (address);
create index flow_address_by_last_flow on flow_address (last_flow_at);

-- Flows from then on were counted when their addresses were already recorded. The first pass with this table sets it.
alter table flow_edge_cursor add column addresses_since timestamp not null default 'infinity';
