/** Payloads of the supply-chain component. All rows of a version have its mark, so that mixtures are found. */
import assert from 'node:assert/strict'
import type http from 'node:http'
import { gzipSync } from 'node:zlib'
import type postgres from 'postgres'
import { TOKENS } from '../support/app.ts'
import { type Broker, type Reply, request } from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'

export type Kind = 'vulnerabilities' | 'sbom'

/** The payload of a kind of image number `image`, as of the `version`th scan. */
export interface Version {
  readonly kind: Kind
  readonly image: number
  readonly version: number
}

const FIRST_SCAN = Date.UTC(2026, 0, 1)
/** RFC 3339. Each version is one second newer than the previous one. */
export const scannedAt = (version: number) => new Date(FIRST_SCAN + version * 1_000).toISOString()
export const imageOf = (image: number) => digestOf(`payload-${image}`)
/** Versions have different sizes, and share most of their rows except for the mark. */
export const rowsOf = (version: number) => depth(60, 150) + (version % 7) * 10

const header = ({ image, version }: Version) => ({
  schema_version: 1,
  image: { digest: imageOf(image), repository: 'team/app', tag: 'v1' },
  source: 'operator-scanner',
  scanned_at: scannedAt(version),
})

export function bodyOf(sent: Version): object {
  const { kind, version } = sent
  const rows = Array.from({ length: rowsOf(version) }, (_, n) => n)
  if (kind === 'sbom') {
    return {
      ...header(sent),
      components: rows.map((n) => ({ name: `component-${n}`, version: String(version), purl: `pkg:generic/c${n}` })),
    }
  }
  const vulnerabilities = rows.map((n) => ({
    id: `CVE-2026-${10_000 + n}`,
    package: { name: 'openssl', version: '3.0.1' },
    severity: ['CRITICAL', 'HIGH', 'LOW'][(n + version) % 3],
    title: String(version),
    kev: version % 2 === 0,
    epss: (version % 100) / 100,
  }))
  return { ...header(sent), vulnerabilities }
}

/** One page of an SBOM; the components are numbered across all pages. */
export function pageOf(sent: Version, index: number, total: number, perPage: number): object {
  const components = Array.from({ length: perPage }, (_, n) => ({
    name: `component-${index * perPage + n}`,
    version: String(sent.version),
  }))
  return { ...header(sent), page: { set_id: `set-${sent.version}`, index, total }, components }
}

/** Posts a payload to a broker that has `TOKENS`. */
export function postPayload(
  { url }: Pick<Broker, 'url'>,
  kind: Kind,
  image: number,
  body: object,
  agent?: http.Agent,
): Promise<Reply> {
  return request(`${url}/images/${imageOf(image)}/${kind}`, {
    method: 'POST',
    body: gzipSync(JSON.stringify(body), { level: 1 }),
    headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_SUPPLYCHAIN}`, 'content-encoding': 'gzip' },
    ...(agent && { agent }),
  })
}

/** The stored version of a payload and the count of its rows. */
export interface Stored {
  readonly version: number
  readonly rows: number
}

/**
 * The stored version of each payload by kind and image, read in one statement. Fails if the version or count of the
 * rows differs from the header.
 */
export async function storedVersions(sql: postgres.Sql): Promise<Map<string, Stored>> {
  const found = await sql<
    { digest: string; kind: Kind; scanned_at: string; item_count: number; rows: number; marks: string[] | null }[]
  >`
    select r.digest, r.kind, to_json(r.scanned_at) #>> '{}' as scanned_at, r.item_count::int as item_count, f.rows, to_json(f.marks) as marks
    from image_report r
    cross join lateral (
      select count(*)::int as rows, array_agg(distinct f.title) as marks
      from image_finding f where f.digest = r.digest and f.source = r.source and r.kind = 'vulnerabilities'
      union all
      select count(*)::int, array_agg(distinct c.version)
      from image_component c where c.digest = r.digest and c.source = r.source and r.kind = 'sbom') f
    where f.rows > 0`
  const [headers] = await sql<{ n: number }[]>`select count(*)::int as n from image_report`
  assert.equal(found.length, headers!.n, 'a header has no rows')
  return new Map(
    found.map(({ digest, kind, scanned_at, item_count, rows, marks }) => {
      const version = (Date.parse(`${scanned_at}Z`) - FIRST_SCAN) / 1_000
      assert.deepEqual(marks, [String(version)], `${kind} of ${digest}: a mixture`)
      assert.equal(rows, item_count, `${kind} of ${digest}: rows`)
      return [keyOf(kind, digest), { version, rows }]
    }),
  )
}

export const keyOf = (kind: Kind, digest: string) => `${kind} ${digest}`
