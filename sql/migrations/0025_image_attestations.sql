-- A row has the latest result of checking an image for signatures and attestations. The image may have left the
-- inventory. `signatures` and `attestations` are JSON as text, so that numbers keep their digits and results can be
-- compared. The next four columns are the parts of them that lists, the feed of running containers and policies use.
create table image_attestation (
  digest                text collate "C" primary key,
  repository            text collate "C" not null,
  verdict               text collate "C" not null
    check (verdict in ('verified', 'key_signed', 'unsigned', 'invalid', 'unknown')),
  reason                text collate "C",
  trust_root            text collate "C",
  signed_via            text collate "C",
  signed_digest         text collate "C",
  signatures            text collate "C" not null,
  attestations          text collate "C" not null,
  verified_signatures   text not null,
  verified_attestations text not null,
  signers               text not null,
  verified_predicates   text not null,
  post                  text collate "C" not null,
  checked_at            timestamp not null,
  received_at           timestamp not null
) with (fillfactor = 80);

create index image_attestation_by_verdict on image_attestation (verdict, digest);
create index image_attestation_by_repository on image_attestation (repository, verdict, digest);
create index image_attestation_oldest on image_attestation (checked_at);
