/**
 * Exports an SBOM as a CycloneDX 1.5 document (docs/contract.md#sbom). Keys are in alphabetical order, so that two
 * documents compare.
 */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { digestText } from '../images/digest.ts'
import type { RawRow } from '../records/index.ts'
import type { Page } from '../records/page.ts'
import type { WireNames } from '../wire-names/index.ts'
import { type Report, readReports, reportList } from './reports.ts'
import { chosen, type SbomChoice } from './sbom.ts'

const Property = z.strictObject({ name: z.string(), value: z.string() })

/** The document. An unknown version is left out: the schema of CycloneDX allows no null. */
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
      component: z.strictObject({
        'bom-ref': digestText,
        name: z.string(),
        type: z.literal('container'),
        version: digestText,
      }),
      properties: z.array(Property),
      tools: z.strictObject({
        components: z.array(
          z.strictObject({ name: z.string(), type: z.literal('application'), version: z.string().optional() }),
        ),
      }),
    }),
    specVersion: z.literal('1.5'),
    version: z.literal(1),
  })
  .meta({ id: 'CycloneDX' })

/** Components that PostgreSQL concatenates into one text: the driver buffers each text whole. */
const CHUNK = 1_000
/** Components of a page of the document; nearly all documents have one page. The longest possible page takes 20 MB. */
export const PAGE_COMPONENTS = 5_000

const COUNT = fixed(`
  with ${chosen('$1', '$2', '$3')}
  select r.item_count
  from chosen c
  join image_report r on r.digest = c.digest and r.source = c.source and r.kind = 'sbom'`)

const json = (value: string) => `to_json(${value})::text`
const PROPERTIES = {
  PkgType: 'type',
  Class: 'class',
  SrcName: 'src_name',
  SrcVersion: 'src_version',
  LayerDigest: 'layer_digest',
}
const property = ([name, column]: string[]) =>
  `'{"name":"aquasecurity:trivy:${name}","value":' || ${json(`m.${column}`)} || '}'`

// Concatenated as text, where concat() leaves out nulls: building objects takes PostgreSQL four times as long.
const COMPONENT = `concat(
      '{"bom-ref":"c', m.position - 1, '"',
      ',"licenses":[' || nullif(array_to_string(array(
        select '{"license":{"name":' || ${json('l.name')} || '}}' from unnest(m.licenses) l(name)), ','), '') || ']',
      ',"name":', ${json('m.name')},
      ',"properties":[' || nullif(concat_ws(',', ${Object.entries(PROPERTIES).map(property).join(', ')}), '') || ']',
      ',"purl":' || ${json('m.purl')},
      ',"type":"', case when m.type = 'operating-system' then m.type else 'library' end, '"',
      ',"version":' || ${json('m.version')}, '}')`

const chunks = (of: string, source: string, first: string, last: string) => `
  cross join lateral generate_series(${first}, ${last}) k(n)
  cross join lateral (
    select string_agg(${COMPONENT}, ',' order by m.position) as components
    from image_component m
    where m.digest = ${of} and m.source = ${source}
      and m.position > k.n * ${CHUNK} and m.position <= (k.n + 1) * ${CHUNK}) l`

const CHUNKS_PER_PAGE = PAGE_COMPONENTS / CHUNK

const FIRST = fixed(`
  with ${chosen('$1', '$2', '$3')}
  select case when k.n = 0 then ${reportList('sbom', 'chosen', 'e.nth')} end,
         l.components, c.digest, c.source, r.content_hash, r.item_count::text
  from chosen c
  join image_report r on r.digest = c.digest and r.source = c.source and r.kind = 'sbom'
  ${chunks('c.digest', 'c.source', '0', `least((r.item_count - 1) / ${CHUNK}, ${CHUNKS_PER_PAGE - 1})`)}
  order by k.n`)

const NEXT = fixed(`
  select l.components
  from image_report r
  ${chunks('r.digest', 'r.source', '$1::bigint', `least((r.item_count - 1) / ${CHUNK}, $2::bigint)`)}
  where r.digest = $3 and r.source = $4 and r.kind = 'sbom' and r.content_hash = $5
  order by k.n`)

const HEAD = Buffer.from('{"bomFormat":"CycloneDX","components":')
const COMMA = Buffer.from(',')

/** A document: the text before and after its components, and the components in pages. */
interface CycloneDxDocument {
  readonly report: Report
  readonly head: Buffer
  readonly first: Page<number>
  /** Rejects if the SBOM was replaced since the document began. */
  readonly next: (chunk: number) => Promise<Page<number>>
  readonly tail: Buffer
}

/** Returns the number of components of the SBOM that answers, or null without one. */
export async function countComponents(gate: Gate, digest: string, choice: SbomChoice): Promise<number | null> {
  const { source, reportDigest } = choice
  const [row] = await gate((sql) => COUNT(sql, digest, source, reportDigest))
  return row ? Number(row.item_count) : null
}

/**
 * Returns the document of the SBOM that answers, or null without one. All pages come from the same payload: if it is
 * replaced in the meantime, the next page fails.
 */
export async function readCycloneDx(
  gate: Gate,
  digest: string,
  { source, reportDigest }: SbomChoice,
  names: WireNames,
): Promise<CycloneDxDocument | null> {
  const rows: RawRow[] = await gate((sql) => FIRST(sql, digest, source, reportDigest).raw())
  const [report] = readReports(rows[0]?.[0] ?? null, names)
  if (!report) return null
  const [ofDigest, ofSource, contentHash, itemCount] = rows[0]!.slice(2).map(String)
  const chunks = Math.ceil(Number(itemCount) / CHUNK)
  const next = async (chunk: number): Promise<Page<number>> => {
    const more: RawRow[] = await gate((sql) =>
      NEXT(sql, chunk, chunk + CHUNKS_PER_PAGE - 1, ofDigest!, ofSource!, contentHash!).raw(),
    )
    if (more.length === 0) throw new HttpError(503, 'the SBOM was replaced: ask again', { 'retry-after': '1' })
    return pageOf(more, 0, chunk, chunks)
  }
  return {
    report,
    head: HEAD,
    first: pageOf(rows, 1, 0, chunks),
    next,
    tail: Buffer.from(`,"metadata":${JSON.stringify(metadataOf(digest, report))},"specVersion":"1.5","version":1}`),
  }
}

/** The components in a column of `rows`, which begin with the chunk of this number. */
function pageOf(rows: readonly RawRow[], column: number, chunk: number, chunks: number): Page<number> {
  const texts = rows.flatMap((row) => row[column] ?? [])
  const end = chunk + CHUNKS_PER_PAGE
  return {
    json: Buffer.concat(texts.flatMap((text, n) => (n === 0 ? [text] : [COMMA, text]))),
    count: texts.length,
    last: end < chunks ? end : null,
  }
}

function metadataOf(digest: string, report: Report): z.output<typeof CycloneDx>['metadata'] {
  const properties = {
    source: report.source,
    reportDigest: report.reportDigest,
    join: report.join,
    sbomTrust: report.sbomTrust ?? 'n/a',
    scannedAt: `${report.scannedAt}+00:00`,
  }
  const version = report.scannerVersion ?? undefined
  return {
    component: { 'bom-ref': digest, name: report.imageRef ?? digest, type: 'container', version: digest },
    properties: Object.entries(properties).map(([name, value]) => ({ name: `kguardian:${name}`, value })),
    tools: {
      components: [{ name: report.scannerName ?? report.source, type: 'application', ...(version ? { version } : {}) }],
    },
  }
}
