/** Reads OpenVEX 0.2.0. https://github.com/openvex/spec/blob/main/OPENVEX-SPEC.md */
import { z } from 'zod'
import { JUSTIFICATIONS, type Justification, MAX_BY_CHARS, MAX_WHY_CHARS } from '../decisions/words.ts'
import { Slice } from '../event-loop/slices.ts'
import { listOf } from '../http/request/first-fault.ts'
import { canonicalId } from '../supply-chain/advisory.ts'
import { VULNERABILITY } from '../supply-chain/exposure.ts'
import { parseRfc3339 } from '../time/timestamp.ts'
import {
  type DecisionRow,
  type Ignored,
  MAX_DOCUMENT_ID_CHARS,
  MAX_PRODUCT_BYTES,
  MAX_PRODUCTS,
  MAX_STATEMENT_BYTES,
  MAX_STATEMENTS,
  type ParsedDocument,
  type ParsedStatement,
} from './parsed.ts'
import { readOrRefuse } from './place.ts'
import { type Identity, packageOf, targetOf } from './target.ts'

export const OPENVEX_CONTEXT = 'https://openvex.dev/ns/v0.2.0'

const text = z.string().nullish()
const time = z.string().refine((one) => parseRfc3339(one) !== null, 'expected RFC 3339 with a zone')

const Component = z.object({
  '@id': text,
  identifiers: z.record(z.string(), z.string()).nullish(),
  hashes: z.record(z.string(), z.string()).nullish(),
})
const Product = Component.extend({ subcomponents: listOf(Component, MAX_PRODUCTS).nullish() })

const Statement = z.object({
  '@id': text,
  version: z.int().nullish(),
  vulnerability: z.object({ '@id': text, name: z.string(), description: text, aliases: z.array(z.string()).nullish() }),
  timestamp: time.nullish(),
  last_updated: time.nullish(),
  status: z.string(),
  supplier: text,
  status_notes: text,
  justification: text,
  impact_statement: text,
  action_statement: text,
  action_statement_timestamp: text,
  products: listOf(Product, MAX_PRODUCTS).nullish(),
})
type Statement = z.output<typeof Statement>

const Document = z.object({
  '@context': z.literal(OPENVEX_CONTEXT),
  '@id': z.string().min(1).max(MAX_DOCUMENT_ID_CHARS),
  author: z.string().min(1).max(MAX_BY_CHARS),
  timestamp: time,
  last_updated: time.nullish(),
  version: z.int().min(0),
  statements: z.array(z.unknown()).max(MAX_STATEMENTS),
})

const STATUSES = ['not_affected', 'affected', 'fixed', 'under_investigation'] as const

/** @throws HttpError 400 for a document that is not valid */
export async function readOpenVex(json: unknown): Promise<ParsedDocument> {
  const document = readOrRefuse(Document, json, [])
  const slice = new Slice()
  const statements: ParsedStatement[] = []
  for (const [position, one] of document.statements.entries()) {
    if (slice.isOver) await slice.next()
    const statement = readOrRefuse(Statement, one, ['statements', position])
    statements.push(readStatement(statement, position, document))
  }
  return {
    ...{ format: 'openvex', id: document['@id'], version: document.version, author: document.author },
    ...{ issuedAt: parseRfc3339(document.last_updated ?? document.timestamp), statements },
  }
}

const isOneOf = <T extends string>(list: readonly T[], word: string | null | undefined): word is T =>
  (list as readonly unknown[]).includes(word)

function readStatement(
  { products, ...sent }: Statement,
  position: number,
  { author, timestamp }: z.output<typeof Document>,
): ParsedStatement {
  const vulnerability = sent.vulnerability.name
  const nothing = (reason: Ignored['reason']): ParsedStatement => ({
    ...{ vulnerability, content: null, decisions: [], ignored: [{ reason, product: null }] },
  })
  if (!VULNERABILITY.test(vulnerability)) return nothing('vulnerability_not_valid')
  if (!isOneOf(STATUSES, sent.status)) return nothing('unknown_status')
  const hasReason = sent.status === 'not_affected' && sent.justification
  if (hasReason && !isOneOf(JUSTIFICATIONS, sent.justification)) return nothing('unknown_justification')
  if (sent.status === 'not_affected' && !hasReason && !sent.impact_statement) return nothing('justification_missing')
  if (!products || products.length === 0) return nothing('no_product')
  // A statement without a time has that of its document, also after the document was updated.
  const content = withoutNulls({ ...sent, timestamp: sent.timestamp ?? timestamp })
  if (Buffer.byteLength(JSON.stringify(content)) > MAX_STATEMENT_BYTES) return nothing('too_long')

  const shared = {
    ...canonicalId(vulnerability, validAliases(sent.vulnerability.aliases)),
    decision: sent.status,
    justification: hasReason ? (sent.justification as Justification) : null,
    decided_by: author,
    reason: (sent.impact_statement || sent.action_statement || sent.status_notes || '').slice(0, MAX_WHY_CHARS),
    decided_at: parseRfc3339(sent.last_updated ?? sent.timestamp ?? timestamp),
    statement_position: position,
  }
  const decisions: DecisionRow[] = []
  const ignored: Ignored[] = []
  for (const { subcomponents, ...product } of products) {
    const named = product['@id'] ?? product.identifiers?.purl ?? null
    const ignore = (reason: Ignored['reason'], what = named) => ignored.push({ reason, product: what })
    const target = targetOf(identityOf(product))
    const parts = subcomponents ?? []
    if ('reason' in target) ignore(target.reason)
    else if (parts.length > 0 && target.package_purl !== undefined) ignore('product_not_an_image')
    else
      for (const part of parts.length > 0 ? parts : [null]) {
        const inside = part === null ? {} : packageOf(identityOf(part), null)
        const kept = { product: withoutNulls(product), ...(part && { subcomponent: withoutNulls(part) }) }
        if (inside === null) ignore('subcomponent_not_known', part?.['@id'] ?? named)
        else if (Buffer.byteLength(JSON.stringify(kept)) > MAX_PRODUCT_BYTES) ignore('too_long')
        else decisions.push({ ...shared, ...target, ...inside, product: kept })
      }
  }
  return { vulnerability, content: decisions.length > 0 ? content : null, decisions, ignored }
}

const validAliases = (aliases: readonly string[] | null | undefined) =>
  (aliases ?? []).filter((one) => VULNERABILITY.test(one))

const identityOf = ({ '@id': id, identifiers, hashes }: z.output<typeof Component>): Identity => ({
  id: id ?? null,
  purl: identifiers?.purl ?? null,
  hashes: Object.entries(hashes ?? {}),
})

const withoutNulls = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined))
