-- A finding that came under an id which another payload tells as an alias is kept by the vulnerability of that alias. Its rows as they were
-- sent are kept here, so that it can be named anew when aliases change. Nothing that ran before reads or writes this.
create table finding_sent (
  digest            text collate "C" not null,
  source            text collate "C" not null,
  -- The finding that it is part of.
  vuln_id           text collate "C" not null,
  package_name      text collate "C" not null,
  installed_version text collate "C" not null,
  -- Its own id in upper case; null where it is kept by that id whatever others tell.
  name              text collate "C",
  sent              jsonb not null
);

create index finding_sent_by_payload on finding_sent (digest, source);
create index finding_sent_by_name on finding_sent (name, digest, source) where name is not null;
