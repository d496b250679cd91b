-- Writes the header of a payload over the previous one. The packages of other content are to be read again, even if it
-- was stored before.
create or replace function write_report(sent image_report) returns void
language sql
as $$
  insert into image_report as r select sent.*
  on conflict (digest, source, kind) do update set
    digest_kind        = excluded.digest_kind,
    platform_manifests = excluded.platform_manifests,
    index_digest       = excluded.index_digest,
    manifest_digests   = excluded.manifest_digests,
    image_ref          = excluded.image_ref,
    registry           = excluded.registry,
    repository         = excluded.repository,
    normal_repository  = excluded.normal_repository,
    tag                = excluded.tag,
    scanner_name       = excluded.scanner_name,
    scanner_vendor     = excluded.scanner_vendor,
    scanner_version    = excluded.scanner_version,
    scanned_at         = excluded.scanned_at,
    db_updated_at      = excluded.db_updated_at,
    os_family          = excluded.os_family,
    os_name            = excluded.os_name,
    os_eosl            = excluded.os_eosl,
    observed_in        = excluded.observed_in,
    content_hash       = excluded.content_hash,
    sbom_format        = excluded.sbom_format,
    sbom_spec_version  = excluded.sbom_spec_version,
    item_count         = excluded.item_count,
    sbom_sources       = excluded.sbom_sources,
    sbom_trust         = excluded.sbom_trust,
    attestation        = excluded.attestation,
    post               = excluded.post,
    received_at        = excluded.received_at,
    packages_hash      = case when r.content_hash = excluded.content_hash then r.packages_hash end
$$;
