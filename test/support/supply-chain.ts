/** Stored payloads of findings and SBOMs, for tests of reads. */
import assert from 'node:assert/strict'
import type postgres from 'postgres'

type Fields = Record<string, unknown>

let made = 0

/** The header of a payload; the default `scanned_at` is newer than all earlier ones. */
export const header = (digest: string, source: string, fields: Fields = {}): Fields => {
  made++
  return {
    digest,
    source,
    digest_kind: 'unknown',
    platform_manifests: {},
    index_digest: null,
    image_ref: null,
    registry: null,
    repository: null,
    normal_repository: null,
    tag: null,
    scanner_name: null,
    scanner_vendor: null,
    scanner_version: null,
    scanned_at: new Date(Date.UTC(2024, 4, 1) + made * 1_000).toISOString().slice(0, 19),
    db_updated_at: null,
    os_family: null,
    os_name: null,
    os_eosl: false,
    observed_in: [],
    content_hash: `content-${made}`,
    sbom_format: null,
    sbom_spec_version: null,
    sbom_sources: [],
    sbom_trust: null,
    attestation: null,
    post: `post-${made}`,
    ...fields,
  }
}

/** A finding with few fields; `severity` is its number. */
export const finding = (vuln_id: string, fields: Fields = {}): Fields => ({
  severity: 1,
  vuln_id,
  package_name: 'openssl',
  installed_version: '3.0.1',
  package_type: null,
  package_purl: null,
  fixed_versions: [],
  score: null,
  cvss: {},
  title: null,
  primary_url: null,
  target: null,
  class: null,
  published_at: null,
  last_modified_at: null,
  file_paths: [],
  kev: null,
  kev_date_added: null,
  epss: null,
  epss_percentile: null,
  aliases: [],
  omitted: 0,
  ...fields,
})

/** A component with only a name. */
export const component = (name: string, fields: Fields = {}): Fields => ({
  name,
  version: null,
  purl: null,
  type: null,
  class: null,
  src_name: null,
  src_version: null,
  licenses: [],
  layer_digest: null,
  file_paths: [],
  ...fields,
})

type Target = { sql: postgres.Sql }

/** Stores a payload of findings over the previous one of the digest and source. Resolves to its header. */
export async function storeFindings(
  { sql }: Target,
  digest: string,
  source: string,
  findings: readonly Fields[],
  fields: Fields = {},
): Promise<Fields> {
  const sent = header(digest, source, { item_count: findings.length, ...fields })
  const [row] = await sql`
    select store_findings(${JSON.stringify(sent)}::text::json, ${JSON.stringify(findings)}::text) as answer`
  assert.deepEqual(row!.answer, { status: 'stored', items: findings.length })
  return sent
}

/** Stores a whole SBOM over the previous one of the digest and source. Resolves to its header. */
export async function storeSbom(
  { sql }: Target,
  digest: string,
  source: string,
  components: readonly Fields[],
  fields: Fields = {},
  status: 'stored' | 'unchanged' = 'stored',
): Promise<Fields> {
  const sent = header(digest, source, { item_count: components.length, ...fields })
  const [row] = await sql`
    select store_sbom(${JSON.stringify(sent)}::text::json, null, ${JSON.stringify(components)}::text) as answer`
  assert.deepEqual(row!.answer, status === 'stored' ? { status, items: components.length } : { status })
  return sent
}
