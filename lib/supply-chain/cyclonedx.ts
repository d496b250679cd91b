/** An SBOM as one CycloneDX 1.5 document (interop-supply-chain 3.4). Keys come in alphabetical order, so that two documents compare. */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { digestText } from '../images/digest.ts'
import type { RawRow } from '../records/index.ts'
import type { WireNames } from './names.ts'
import { type Report, readReports, reportList } from './reports.ts'
import { chosen } from './sbom.ts'

const Property = z.strictObject({ name: z.string(), value: z.string() })

/** The document. A version that nobody knows is left out, since the format knows no null (S23). */
export const CycloneDx = z
  .strictObject({
    bomFormat: z.literal('CycloneDX'),
    components: z.array(
      z.strictObject({
        'bom-ref': z.string(),
        licenses: z.array(z.strictObject({ license: z.strictObject({ name: z.string() }) })).optional(),
        name: z.string(),
        properties: z.array(Property).optional(),
        purl: z.string().optional(),
        type: z.enum(['library', 'operating-system']),
        version: z.string().optional(),
      }),
    ),
    metadata: z.strictObject({
      component: z.strictObject({ 'bom-ref': digestText, name: z.string(), type: z.literal('container'), version: digestText }),
      properties: z.array(Property),
      tools: z.strictObject({
        components: z.array(z.strictObject({ name: z.string(), type: z.literal('application'), version: z.string().optional() })),
      }),
    }),
    specVersion: z.literal('1.5'),
    version: z.literal(1),
  })
  .meta({ id: 'CycloneDX' })

/** Components whose text PostgreSQL makes at a time: the driver takes each text whole. */
const CHUNK = 1_000

const COUNT = fixed(`
  with ${chosen('$1', '$2')}
  select r.item_count
  from chosen c
  join image_report r on r.digest = c.digest and r.source = c.source and r.kind = 'sbom'`)

const json = (value: string) => `to_json(${value})::text`
const PROPERTIES = { PkgType: 'type', Class: 'class', SrcName: 'src_name', SrcVersion: 'src_version', LayerDigest: 'layer_digest' }
const property = ([name, column]: string[]) => `'{"name":"aquasecurity:trivy:${name}","value":' || ${json(`m.${column}`)} || '}'`

// Put together from texts, of which concat() leaves out those that are null: built from objects it takes PostgreSQL four times as long.
const COMPONENT = `concat(
      '{"bom-ref":"c', m.position - 1, '"',
      ',"licenses":[' || nullif(array_to_string(array(
        select '{"license":{"name":' || ${json('l.name')} || '}}' from unnest(m.licenses) l(name)), ','), '') || ']',
      ',"name":', ${json('m.name')},
      ',"properties":[' || nullif(concat_ws(',', ${Object.entries(PROPERTIES).map(property).join(', ')}), '') || ']',
      ',"purl":' || ${json('m.purl')},
      ',"type":"', case when m.type = 'operating-system' then m.type else 'library' end, '"',
      ',"version":' || ${json('m.version')}, '}')`

const DOCUMENT = fixed(`
  with ${chosen('$1', '$2')}
  select case when k.n = 0 then ${reportList('sbom', 'chosen', 'e.source')} end, l.components
  from chosen c
  join image_report r on r.digest = c.digest and r.source = c.source and r.kind = 'sbom'
  cross join lateral generate_series(0, (r.item_count - 1) / ${CHUNK}) k(n)
  cross join lateral (
    select string_agg(${COMPONENT}, ',' order by m.position) as components
    from image_component m
    where m.digest = c.digest and m.source = c.source and m.position > k.n * ${CHUNK} and m.position <= (k.n + 1) * ${CHUNK}) l
  order by k.n`)

const HEAD = Buffer.from('{"bomFormat":"CycloneDX","components":[')
const COMMA = Buffer.from(',')

/** Components of the SBOM that answers; null without one. A null `source` is any, an empty one none. */
export async function countComponents(gate: Gate, digest: string, source: string | null): Promise<number | null> {
  const [row] = await gate((sql) => COUNT(sql, digest, source))
  return row ? Number(row.item_count) : null
}

/** The document of the SBOM that answers, null without one. It is of one statement: never of two payloads of which one replaced the other. */
export async function readCycloneDx(gate: Gate, digest: string, source: string | null, names: WireNames): Promise<Buffer | null> {
  const rows: RawRow[] = await gate((sql) => DOCUMENT(sql, digest, source).raw())
  const [report] = readReports(rows[0]?.[0] ?? null, names)
  if (!report) return null
  const chunks = rows.flatMap(([, components], n) => (components ? (n === 0 ? [components] : [COMMA, components]) : []))
  const tail = `],"metadata":${JSON.stringify(metadataOf(digest, report))},"specVersion":"1.5","version":1}`
  return Buffer.concat([HEAD, ...chunks, Buffer.from(tail)])
}

function metadataOf(digest: string, report: Report): z.output<typeof CycloneDx>['metadata'] {
  const told = {
    source: report.source,
    reportDigest: report.reportDigest,
    join: report.join,
    sbomTrust: report.sbomTrust ?? 'n/a',
    scannedAt: `${report.scannedAt}+00:00`,
  }
  const version = report.scannerVersion ?? undefined
  return {
    component: { 'bom-ref': digest, name: report.imageRef ?? digest, type: 'container', version: digest },
    properties: Object.entries(told).map(([name, value]) => ({ name: `kguardian:${name}`, value })),
    tools: { components: [{ name: report.scannerName ?? report.source, type: 'application', ...(version ? { version } : {}) }] },
  }
}
