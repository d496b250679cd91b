/** Writes OpenVEX 0.2.0. https://github.com/openvex/spec/blob/main/OPENVEX-SPEC.md */
import { z } from 'zod'
import type { VexHead } from './head.ts'
import { imageProduct } from './image-product.ts'
import { OPENVEX_CONTEXT } from './openvex-in.ts'
import { notesOf, whyOf } from './own-text.ts'
import type { ImageDecision } from './read.ts'

export const OpenVexDocument = z
  .strictObject({
    '@context': z.literal(OPENVEX_CONTEXT),
    '@id': z.string(),
    author: z.string(),
    timestamp: z.string(),
    version: z.int(),
    statements: z.array(z.looseObject({ status: z.string() })).describe('As OpenVEX 0.2.0 defines them.'),
  })
  .meta({ id: 'OpenVex' })

/** Words that VEX does not have are statements that work is left, with the decision in their text. */
const STATUS_OF = { accepted: 'affected', will_not_fix: 'affected' } as const

/** OpenVEX requires an impact or action statement where CycloneDX may say nothing. */
const NO_REASON = 'No reason is given.'

interface Statement {
  readonly content: object
  readonly products: Map<string, { readonly product: object; readonly subcomponents: object[] }>
}

export function writeOpenVex(
  { id, author, timestamp, digest, repository }: VexHead,
  decisions: readonly ImageDecision[],
): z.output<typeof OpenVexDocument> {
  const statements = new Map<string, Statement>()
  for (const one of decisions) {
    const { key, content, product, subcomponent } = statementOf(one, digest, repository)
    const statement = statements.get(key) ?? { content, products: new Map() }
    statements.set(key, statement)
    const productKey = JSON.stringify(product)
    const named = statement.products.get(productKey) ?? { product, subcomponents: [] }
    statement.products.set(productKey, named)
    if (subcomponent !== null) named.subcomponents.push(subcomponent)
  }
  return {
    ...{ '@context': OPENVEX_CONTEXT, '@id': id, author, timestamp, version: 1 },
    statements: [...statements.values()].map(({ content, products }) => ({
      ...(content as { status: string }),
      products: [...products.values()].map(({ product, subcomponents }) => ({
        ...product,
        ...(subcomponents.length > 0 && { subcomponents }),
      })),
    })),
  }
}

/** A decision as a statement about one product; decisions of one statement have one key. */
function statementOf(one: ImageDecision, digest: string, repository: string) {
  if (one.format === 'openvex' && one.content !== null && one.product !== null) {
    const { product, subcomponent = null } = one.product as { product: object; subcomponent?: object }
    // A product that is named with and without subcomponents is two.
    const key = JSON.stringify([one.origin!.document, one.origin!.statement, subcomponent === null])
    return { key, content: one.content, product, subcomponent }
  }
  const isOfPackage = one.package !== null
  return {
    key: String(one.id),
    content: contentOf(one),
    product: { '@id': imageProduct(digest, repository) },
    subcomponent: isOfPackage ? { '@id': one.package! } : null,
  }
}

function contentOf(one: ImageDecision): object {
  const status = one.decision in STATUS_OF ? STATUS_OF[one.decision as keyof typeof STATUS_OF] : one.decision
  const why = whyOf(one)
  const text =
    status === 'not_affected' && (why !== '' || one.justification === null)
      ? { impact_statement: why || NO_REASON }
      : status === 'affected'
        ? { action_statement: why || NO_REASON }
        : {}
  const notes = status === 'fixed' || status === 'under_investigation' ? `${notesOf(one)} ${why}`.trim() : notesOf(one)
  return {
    vulnerability: { name: one.vulnerability },
    timestamp: `${one.decidedAt}Z`,
    status,
    ...(one.justification !== null && { justification: one.justification }),
    ...text,
    status_notes: notes,
  }
}
