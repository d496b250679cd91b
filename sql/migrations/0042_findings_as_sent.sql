-- If any payload names the id of a finding as an alias, the finding is stored under the vulnerability of that alias
-- (docs/contract.md#findings). This table has its rows as sent, so that the job can rename it when aliases change. The
-- previous release does not use the table.
create table finding_sent (
  digest            text collate "C" not null,
  source            text collate "C" not null,
  -- These three columns name the stored finding that the row is part of.
  vuln_id           text collate "C" not null,
  package_name      text collate "C" not null,
  installed_version text collate "C" not null,
  -- This is the id as sent, in upper case. It is null where the finding must not be renamed.
  name              text collate "C",
  sent              jsonb not null
);

create index finding_sent_by_payload on finding_sent (digest, source);
create index finding_sent_by_name on finding_sent (name, digest, source) where name is not null;
