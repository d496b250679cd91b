-- A statement of a VEX document may name a vulnerability by several ids. Its decision is stored under one of them, so
-- findings under another one, whose scanner names no alias, look here under which. Ids are in upper case.
create table vex_alias (
  document_id text collate "C" not null,
  alias       text collate "C" not null,
  vuln_id     text collate "C" not null,
  primary key (document_id, alias, vuln_id));
create index vex_alias_by_alias on vex_alias (alias, vuln_id);
