-- A VEX product may be one platform of an index: a package URL with the digest of the index and `arch`. Without the
-- platform its decision held for all platforms of the index. Those that are stored are about the digest, as before.
alter table vuln_decision add column image_arch text collate "C";
