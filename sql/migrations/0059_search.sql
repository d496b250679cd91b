-- Search finds repositories by their last segments, and edges by the address of a peer (docs/contract.md#search).

-- A row for each image, and for each edge; only a job writes edges. Both tables are short.
-- squawk-ignore require-concurrent-index-creation
create index image_by_end_of_repository on image (reverse(lower(repository)), digest) where repository is not null;
-- squawk-ignore require-concurrent-index-creation
create index flow_edge_by_address on flow_edge (traffic_in_out_ip) where traffic_in_out_ip is not null;
