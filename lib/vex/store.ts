/** Takes a VEX document in (docs/contract.md#decisions). */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { tooManyHold } from '../decisions/put.ts'
import { MAX_COUNTED, MAX_DOCUMENTS, MAX_HOLDING } from '../decisions/words.ts'
import { HttpError } from '../errors.ts'
import { deserializeError } from '../json/parse.ts'
import { documentedAs } from '../openapi/declare.ts'
import { readCycloneDxVex } from './cyclonedx-in.ts'
import { readOpenVex } from './openvex-in.ts'
import {
  type Ignored,
  MAX_DOCUMENT_DECISIONS,
  MAX_STATEMENTS,
  type ParsedDocument,
  type ParsedStatement,
  REASONS,
  VEX_FORMATS,
} from './parsed.ts'

/** The body of POST /vex; its parts are validated when the format is known. */
export const VexBody = documentedAs(z.record(z.string(), z.unknown()), {
  type: 'object',
  description:
    'A document of OpenVEX 0.2.0 (`@context`, `@id`, `author`, `timestamp`, `version`, `statements`), or of CycloneDX ' +
    `1.4 or later (\`bomFormat\`, \`specVersion\`, \`serialNumber\`, \`vulnerabilities\`). At most ${MAX_STATEMENTS} ` +
    'statements.',
})

const Told = z
  .strictObject({
    reason: z.enum(REASONS),
    product: z.string().nullable().describe('As the document names it; null for the whole statement.'),
  })
  .meta({ id: 'IgnoredProduct' })

export const VexOutcome = z
  .strictObject({
    status: z
      .enum(['stored', 'unchanged', 'stale'])
      .describe('`stale` where a newer version is stored, or another content of this version that is not older.'),
    document: z.string().describe('The id by which the broker knows it.'),
    format: z.enum(VEX_FORMATS),
    version: z.int(),
    storedVersion: z.int(),
    accepted: z.int().min(0).describe('Statements of which at least one product was applied.'),
    ignored: z.int().min(0),
    statements: z.array(
      z
        .strictObject({
          statement: z.int().min(0).describe('Its position in the document, from 0.'),
          vulnerability: z.string().nullable(),
          outcome: z.enum(['accepted', 'ignored']),
          decisions: z.int().min(0).describe('One for each product and subcomponent that was applied.'),
          ignored: z.array(Told).describe('What was not applied, and why.'),
        })
        .meta({ id: 'VexStatementOutcome' }),
    ),
  })
  .meta({ id: 'VexOutcome' })

const STORE = fixed<{ outcome: { status: string; storedVersion: number } }[]>(
  `select store_vex($1::text::json, $2::text, $3::text, ${MAX_HOLDING}, ${MAX_DOCUMENTS}, ${MAX_COUNTED}) as outcome`,
)

/**
 * Stores the decisions of a document over those of its version before. `name` is its id in place of its own. Returns a
 * `VexOutcome` as JSON.
 * @throws HttpError 400 for a document that is not valid; 409 if too many decisions hold, or documents are known
 */
export async function storeVex(
  ingest: Gate,
  json: Readonly<Record<string, unknown>>,
  name: string | null,
): Promise<string> {
  const document = await parsed(json)
  const id = name ?? document.id
  const statements = bounded(document.statements)
  const header = {
    document_id: id,
    format: document.format,
    version: document.version,
    author: document.author,
    issued_at: document.issuedAt,
    content_hash: createHash('sha256').update(JSON.stringify(json)).digest('hex'),
  }
  const contents = statements.flatMap(({ content }, position) => (content === null ? [] : [{ position, content }]))
  // The aliases of a statement are those of all its decisions: sent once, they are never more than the document.
  const decisions = statements.flatMap((one) =>
    one.decisions.map(({ aliases, ...decision }, nth) => (nth === 0 ? { ...decision, aliases } : decision)),
  )
  const [row] = await ingest((sql) =>
    STORE(sql, JSON.stringify(header), JSON.stringify(contents), JSON.stringify(decisions)),
  )
  const { status, storedVersion } = row!.outcome
  if (status === 'full') throw tooManyHold()
  if (status === 'full of documents') throw new HttpError(409, `${MAX_DOCUMENTS} VEX documents are known already`)
  const told = statements.map((one, position) => ({
    statement: position,
    vulnerability: one.vulnerability,
    outcome: one.decisions.length > 0 ? 'accepted' : 'ignored',
    decisions: one.decisions.length,
    ignored: one.ignored,
  }))
  const accepted = told.filter(({ outcome }) => outcome === 'accepted').length
  return JSON.stringify({
    ...{ status, document: id, format: document.format, version: document.version, storedVersion },
    ...{ accepted, ignored: told.length - accepted, statements: told },
  })
}

function parsed(json: Readonly<Record<string, unknown>>): Promise<ParsedDocument> {
  if (Object.hasOwn(json, '@context')) return readOpenVex(json)
  if (Object.hasOwn(json, 'bomFormat')) return readCycloneDxVex(json)
  throw deserializeError('expected OpenVEX (@context) or CycloneDX (bomFormat)')
}

/** Leaves out the decisions beyond the bound, and says so. */
function bounded(statements: readonly ParsedStatement[]): ParsedStatement[] {
  let left = MAX_DOCUMENT_DECISIONS
  return statements.map((one) => {
    const decisions = one.decisions.slice(0, left)
    left -= decisions.length
    if (decisions.length === one.decisions.length) return one
    const beyond: Ignored = { reason: 'too_many', product: null }
    return {
      ...{ vulnerability: one.vulnerability, content: decisions.length > 0 ? one.content : null, decisions },
      ignored: [...one.ignored, beyond],
    }
  })
}
