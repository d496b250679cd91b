-- Stores the verification result of an image over the previous one if it was checked strictly later
-- (docs/contract.md#signatures-and-attestations). Returns `stored`; `same` if this result is there already, whenever it
-- was checked; `other` if a different one is; `absent` if the inventory does not have the image. A `post` id that is
-- stored already belongs to a retry whose answer was lost.
create or replace function store_attestation(document json) returns text
language plpgsql
as $$
declare
  sent   image_attestation := json_populate_record(null::image_attestation, document);
  stored image_attestation;
begin
  if not exists (select from image m where m.digest = sent.digest) then
    return 'absent';
  end if;

  sent.received_at := now() at time zone 'utc';
  insert into image_attestation as a select sent.*
  on conflict (digest) do update set
    repository            = excluded.repository,
    verdict               = excluded.verdict,
    reason                = excluded.reason,
    trust_root            = excluded.trust_root,
    signed_via            = excluded.signed_via,
    signed_digest         = excluded.signed_digest,
    signatures            = excluded.signatures,
    attestations          = excluded.attestations,
    verified_signatures   = excluded.verified_signatures,
    verified_attestations = excluded.verified_attestations,
    signers               = excluded.signers,
    verified_predicates   = excluded.verified_predicates,
    post                  = excluded.post,
    checked_at            = excluded.checked_at,
    received_at           = excluded.received_at
  where excluded.checked_at > a.checked_at;
  if found then
    return 'stored';
  end if;

  -- The insert has locked the row, so this is the row that the time was compared with.
  select * into strict stored from image_attestation a where a.digest = sent.digest;
  if stored.post = sent.post then
    return 'stored';
  end if;
  return case
    when (stored.repository, stored.verdict, stored.signatures, stored.attestations)
           = (sent.repository, sent.verdict, sent.signatures, sent.attestations)
     and (stored.reason, stored.trust_root, stored.signed_via, stored.signed_digest)
           is not distinct from (sent.reason, sent.trust_root, sent.signed_via, sent.signed_digest)
    then 'same' else 'other' end;
end
$$;
