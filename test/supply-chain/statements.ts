/**
 * Payloads as the ingest worker passes them to the database, and the rows afterwards, for tests of the SQL functions.
 */
import { after } from 'node:test'
import type postgres from 'postgres'
import { openPool } from '../../lib/db/open-pool.ts'
import { sessionSettings, settingStatement } from '../../lib/db/session.ts'

export type Source = 'db-matcher' | 'operator-scanner' | 'registry'
export type Kind = 'vulnerabilities' | 'sbom'
export const SOURCES: readonly Source[] = ['db-matcher', 'operator-scanner', 'registry']
export const KINDS: readonly Kind[] = ['vulnerabilities', 'sbom']

export interface Observed {
  namespace: string
  kind: string
  name: string
  container: string
}

export interface Answer {
  status: string
  items?: number
  received?: number
  total?: number
  reason?: string
  stored_scanned_at?: string
}

export interface Page {
  set_id: string
  index: number
  total: number
}

let count = 0

/** A digest that no other test uses. */
export const newDigest = () => `sha256:${(++count).toString(16).padStart(64, '0')}`
export const newPost = () => `post-${++count}`

/** Hours of one day and a fraction of a second, so that scans have microseconds. */
export const at = (hour: number) => new Date(Date.UTC(2026, 0, 1, hour)).toISOString().replace('.000Z', '.000001')

const DEFAULTS = {
  source: 'operator-scanner' as Source,
  digest_kind: 'unknown',
  platform_manifests: {} as Record<string, string>,
  index_digest: null as string | null,
  image_ref: null,
  registry: null,
  repository: null,
  normal_repository: null as string | null,
  tag: null as string | null,
  scanner_name: null,
  scanner_vendor: null,
  scanner_version: null,
  scanned_at: at(1),
  db_updated_at: null,
  os_family: null,
  os_name: null as string | null,
  os_eosl: false,
  observed_in: [] as Observed[],
  item_count: 0,
  sbom_format: null,
  sbom_spec_version: null,
  sbom_sources: [] as string[],
  sbom_trust: null,
  attestation: null,
}

export type Header = typeof DEFAULTS & { digest: string; content_hash: string; post: string }

export const header = (fields: Partial<Header> & { digest: string }): Header => ({
  ...DEFAULTS,
  content_hash: `hash-${++count}`,
  post: newPost(),
  ...fields,
})

export const finding = (vuln_id: string, fields: Record<string, unknown> = {}) => ({
  severity: 1,
  vuln_id,
  package_name: 'openssl',
  installed_version: '3.0.1',
  package_type: 'deb',
  package_purl: null,
  fixed_versions: [] as string[],
  score: 7.5,
  cvss: { nvd: { v3_score: 7.5 } },
  title: null as string | null,
  primary_url: null,
  target: null,
  class: 'os-pkgs',
  published_at: null,
  last_modified_at: null,
  file_paths: [] as string[],
  kev: null as boolean | null,
  kev_date_added: null as string | null,
  epss: null as number | null,
  epss_percentile: null as number | null,
  aliases: [] as string[],
  omitted: 0,
  status: null,
  ...fields,
})
export type Finding = ReturnType<typeof finding>

export const component = (name: string) => ({
  ...{ name, version: '1', purl: null, type: 'deb', class: null, src_name: null, src_version: null, licenses: ['MIT'] },
  ...{ layer_digest: null, file_paths: [] },
})

export type Sql = postgres.Sql | postgres.TransactionSql

/** A session like those of ingest, without the pool, which repeats a statement after a deadlock. */
export async function ingestSession(url: string): Promise<postgres.Sql> {
  const session = openPool(url, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  after(() => session.end({ timeout: 1 }))
  await session.unsafe(settingStatement(sessionSettings('ingest', 30_000)))
  return session
}

/** `rows` null asks whether the rows are wanted. */
export async function storeFindings(sql: Sql, sent: Header, rows: readonly object[] | null): Promise<Answer> {
  const list = rows && JSON.stringify(rows)
  const [row] = await sql<{ answer: Answer }[]>`
    select store_findings(${JSON.stringify({ ...sent, item_count: rows?.length ?? sent.item_count })}::text::json, ${list}) as answer`
  return row!.answer
}

/** `rows` null asks whether the rows are wanted. */
export async function storeSbom(
  sql: Sql,
  sent: Header,
  rows: readonly object[] | null,
  page: Page | null = null,
): Promise<Answer> {
  const list = rows && JSON.stringify(rows)
  const [row] = await sql<{ answer: Answer }[]>`
    select store_sbom(${JSON.stringify({ ...sent, item_count: rows?.length ?? sent.item_count })}::text::json,
                      ${page && JSON.stringify(page)}::text::json, ${list}) as answer`
  return row!.answer
}

/** Reports of a kind. */
export const store = (sql: Sql, kind: Kind, sent: Header, rows: readonly object[] | null) =>
  kind === 'sbom' ? storeSbom(sql, sent, rows) : storeFindings(sql, sent, rows)

/** Names of the components of an SBOM by position, to detect gaps. */
export async function componentNames(sql: Sql, digest: string, source: Source): Promise<string[]> {
  const rows = await sql<{ name: string; position: string }[]>`
    select name, position from image_component where digest = ${digest} and source = ${source} order by position`
  return rows.map((row, n) => (Number(row.position) === n + 1 ? row.name : `${row.name} at ${row.position}`))
}

/** Runs the part of the job that recounts changed vulnerabilities. */
export const look = (sql: Sql) => sql`
  with news as (delete from cve_news returning vuln_id),
  recounted as materialized (
    select n.vuln_id, bool_or(r.kev) as kev, min(r.kev_date_added) as kev_date_added, max(r.epss) as epss, max(r.epss_percentile) as epss_percentile
    from (select distinct vuln_id from news) n left join image_finding r on r.vuln_id = n.vuln_id
    group by n.vuln_id)
  insert into cve_fact select t.* from recounted t
  on conflict (vuln_id) do update set kev = excluded.kev, kev_date_added = excluded.kev_date_added, epss = excluded.epss,
                                      epss_percentile = excluded.epss_percentile`

/** Returns the error code of a statement, or null if it succeeds. */
export async function faultOf(statement: Promise<unknown>): Promise<string | null> {
  try {
    await statement
    return null
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}
