/** Writes the VEX part of CycloneDX 1.6. https://cyclonedx.org/docs/1.6/json/#vulnerabilities */
import { z } from 'zod'
import type { DecisionWord, Justification } from '../decisions/words.ts'
import type { JsonObject } from '../json/objects.ts'
import type { VexHead } from './head.ts'
import { imageProduct } from './image-product.ts'
import { notesOf, whyOf } from './own-text.ts'
import type { ImageDecision } from './read.ts'

export const CycloneDxVex = z
  .strictObject({
    bomFormat: z.literal('CycloneDX'),
    specVersion: z.literal('1.6'),
    serialNumber: z.string(),
    version: z.literal(1),
    metadata: z.looseObject({ timestamp: z.string() }),
    components: z.array(z.looseObject({})),
    vulnerabilities: z.array(z.looseObject({ id: z.string() })).describe('As CycloneDX 1.6 defines them.'),
  })
  .meta({ id: 'CycloneDxVex' })

/** A decision that nothing is done is an answer of CycloneDX, too. */
const STATE_OF: Readonly<Record<DecisionWord, string>> = {
  accepted: 'exploitable',
  will_not_fix: 'exploitable',
  affected: 'exploitable',
  fixed: 'resolved',
  under_investigation: 'in_triage',
  not_affected: 'not_affected',
}
const RESPONSE_OF: Partial<Record<DecisionWord, readonly string[]>> = {
  accepted: ['will_not_fix'],
  will_not_fix: ['will_not_fix'],
}
/** Null where CycloneDX has no such word: the text says it. */
const JUSTIFICATION_TO: Readonly<Record<Justification, string | null>> = {
  component_not_present: 'code_not_present',
  vulnerable_code_not_present: 'code_not_present',
  vulnerable_code_not_in_execute_path: 'code_not_reachable',
  vulnerable_code_cannot_be_controlled_by_adversary: null,
  inline_mitigations_already_exist: 'protected_by_mitigating_control',
}

/** The components of the document, each under a reference of its own. */
class Components {
  readonly #byRef = new Map<string, JsonObject>()

  constructor(image: JsonObject) {
    this.#byRef.set(String(image['bom-ref']), image)
  }

  /** Returns the reference of a component; another component of that reference stays apart. */
  refOf(ref: string, component: JsonObject, apart: string): string {
    const known = this.#byRef.get(ref)
    const isSame = known !== undefined && JSON.stringify(known) === JSON.stringify({ ...component, 'bom-ref': ref })
    if (known !== undefined && !isSame) return this.refOf(`${apart}#${ref}`, component, `${apart}'`)
    if (known === undefined) this.#byRef.set(ref, { ...component, 'bom-ref': ref })
    return ref
  }

  /** Without the image itself. */
  toList(): JsonObject[] {
    return [...this.#byRef.values()].slice(1)
  }
}

export function writeCycloneDxVex(
  { serial, author, timestamp, digest, repository }: VexHead,
  decisions: readonly ImageDecision[],
): z.output<typeof CycloneDxVex> {
  const image = {
    ...{ 'bom-ref': digest, type: 'container', name: repository || digest, version: digest },
    purl: imageProduct(digest, repository),
  }
  const components = new Components(image)
  const vulnerabilities = new Map<string, { content: object; affects: object[] }>()
  for (const one of decisions) {
    const isOwn = one.format === 'cyclonedx' && one.content !== null && one.product !== null
    const key = isOwn ? JSON.stringify([one.origin!.document, one.origin!.statement]) : String(one.id)
    const statement = vulnerabilities.get(key) ?? { content: isOwn ? one.content! : contentOf(one), affects: [] }
    vulnerabilities.set(key, statement)
    statement.affects.push({ ref: isOwn ? sentRef(one, components) : ownRef(one, digest, components) })
  }
  return {
    ...{ bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber: `urn:uuid:${serial}`, version: 1 },
    metadata: { timestamp, authors: [{ name: author }], component: image },
    components: components.toList(),
    vulnerabilities: [...vulnerabilities.values()].map(({ content, affects }) => ({
      ...(content as { id: string }),
      affects,
    })),
  }
}

/** The reference of the statement as it was sent. */
function sentRef({ product, origin }: ImageDecision, components: Components): string {
  const { affects, component } = product as { affects: { ref: string }; component?: JsonObject }
  return component === undefined ? affects.ref : components.refOf(affects.ref, component, origin!.document)
}

function ownRef({ package: text }: ImageDecision, digest: string, components: Components): string {
  if (text === null) return digest
  const name = text.startsWith('pkg:') ? { name: text, purl: text } : { name: text }
  return components.refOf(text, { 'bom-ref': text, type: 'library', ...name }, 'package')
}

function contentOf(one: ImageDecision): object {
  const justification = one.justification && JUSTIFICATION_TO[one.justification]
  const unnamed = one.justification !== null && justification === null ? `${one.justification}: ` : ''
  const response = RESPONSE_OF[one.decision]
  return {
    id: one.vulnerability,
    analysis: {
      state: STATE_OF[one.decision],
      ...(justification && { justification }),
      ...(response && { response }),
      detail: [`${unnamed}${whyOf(one)}`, notesOf(one)].filter((text) => text !== '').join(' '),
      firstIssued: `${one.decidedAt}Z`,
      lastUpdated: `${one.decidedAt}Z`,
    },
  }
}
