/** Reads the VEX part of CycloneDX 1.4 and later. https://cyclonedx.org/docs/1.6/json/#vulnerabilities */
import { z } from 'zod'
import {
  type DecisionWord,
  type Justification,
  MAX_BY_CHARS,
  MAX_WHY_CHARS,
  RANK,
  SETTLED,
} from '../decisions/words.ts'
import { Slice } from '../event-loop/slices.ts'
import { listOf } from '../http/request/first-fault.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
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
import { type Identity, packageOf, type Target, type TargetOrReason, targetOf } from './target.ts'

/** The states with the decisions that they are. */
const STATES: Readonly<Record<string, DecisionWord>> = {
  resolved: 'fixed',
  resolved_with_pedigree: 'fixed',
  exploitable: 'affected',
  in_triage: 'under_investigation',
  false_positive: 'not_affected',
  not_affected: 'not_affected',
}

/** The justifications that OpenVEX has, too; the others have no counterpart there. */
export const JUSTIFICATION_OF: Readonly<Record<string, Justification | null>> = {
  code_not_present: 'vulnerable_code_not_present',
  code_not_reachable: 'vulnerable_code_not_in_execute_path',
  requires_configuration: null,
  requires_dependency: null,
  requires_environment: null,
  protected_by_compiler: 'inline_mitigations_already_exist',
  protected_at_runtime: 'inline_mitigations_already_exist',
  protected_at_perimeter: null,
  protected_by_mitigating_control: 'inline_mitigations_already_exist',
}

const WILL_NOT_FIX = 'will_not_fix'

const text = z.string().nullish()
const time = z.string().refine((one) => parseRfc3339(one) !== null, 'expected RFC 3339 with a zone')
const Named = z.object({ name: text }).nullish()

const Vulnerability = z.object({
  id: z.string(),
  source: z.object({ name: text, url: text }).nullish(),
  references: z.array(z.object({ id: z.string(), source: z.object({ name: text, url: text }).nullish() })).nullish(),
  description: text,
  detail: text,
  recommendation: text,
  workaround: text,
  analysis: z
    .object({
      state: text,
      justification: text,
      response: z.array(z.string()).nullish(),
      detail: text,
      firstIssued: time.nullish(),
      lastUpdated: time.nullish(),
    })
    .nullish(),
  affects: listOf(z.object({ ref: z.string(), versions: z.array(z.unknown()).nullish() }), MAX_PRODUCTS).nullish(),
})
type Vulnerability = z.output<typeof Vulnerability>

const Document = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.string().regex(/^1\.([4-9]|\d\d)$/, 'expected 1.4 or later'),
  serialNumber: z.string().min(1).max(MAX_DOCUMENT_ID_CHARS),
  version: z.int().min(0).default(1),
  metadata: z
    .object({
      timestamp: time.nullish(),
      authors: z.array(z.object({ name: text, email: text })).nullish(),
      supplier: Named,
      manufacturer: Named,
      component: z.unknown(),
    })
    .nullish(),
  components: z.array(z.unknown()).nullish(),
  vulnerabilities: z.array(z.unknown()).max(MAX_STATEMENTS),
})

/** Components by their reference, and the one that the document is about. */
interface Parts {
  /** How links name the document before its version, in lower case. */
  readonly urn: string
  readonly byRef: ReadonlyMap<string, JsonObject>
  readonly whole: JsonObject | null
}

/** @throws HttpError 400 for a document that is not valid */
export async function readCycloneDxVex(json: unknown): Promise<ParsedDocument> {
  const { metadata, components, ...document } = readOrRefuse(Document, json, [])
  const parts = partsOf(document.serialNumber, metadata?.component, components ?? [])
  const author =
    metadata?.authors?.[0]?.name ||
    metadata?.authors?.[0]?.email ||
    metadata?.supplier?.name ||
    metadata?.manufacturer?.name
  const issuedAt = metadata?.timestamp ? parseRfc3339(metadata.timestamp) : null
  const shared = { decided_by: (author || 'unknown').slice(0, MAX_BY_CHARS), issuedAt }
  const slice = new Slice()
  const vulnerabilities: Vulnerability[] = []
  const open = new Set<string>()
  for (const [position, one] of document.vulnerabilities.entries()) {
    if (slice.isOver) await slice.next()
    const vulnerability = readOrRefuse(Vulnerability, one, ['vulnerabilities', position])
    vulnerabilities.push(vulnerability)
    if (!vulnerability.analysis?.state)
      for (const { ref } of affectedBy(vulnerability, parts)) open.add(keyOf(vulnerability, ref))
  }
  const statements: ParsedStatement[] = []
  for (const [position, vulnerability] of vulnerabilities.entries()) {
    if (slice.isOver) await slice.next()
    statements.push(readStatement(vulnerability, position, parts, { ...shared, open }))
  }
  return {
    ...{ format: 'cyclonedx', id: document.serialNumber, version: document.version, author: shared.decided_by },
    ...{ issuedAt, statements },
  }
}

/** Finds the components with a reference. Nested ones count; the first of a reference counts. */
function partsOf(serial: string, component: unknown, components: readonly unknown[]): Parts {
  const byRef = new Map<string, JsonObject>()
  const waiting: unknown[] = [component, ...components]
  for (let i = 0; i < waiting.length; i++) {
    const one = waiting[i]
    if (!isObject(one)) continue
    const ref = one['bom-ref']
    if (typeof ref === 'string' && !byRef.has(ref)) byRef.set(ref, one)
    if (Array.isArray(one.components)) for (const inner of one.components) waiting.push(inner)
  }
  const urn = `urn:cdx:${serial.toLowerCase().replace('urn:uuid:', '')}/`
  return { urn, byRef, whole: isObject(component) ? component : null }
}

const textIn = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null)

/** Hashes of a container are digests of the image; those of other components are of files. */
function identityOf(component: JsonObject): Identity {
  const isContainer = component.type === 'container'
  const hashes = isContainer && Array.isArray(component.hashes) ? component.hashes.filter(isObject) : []
  return {
    // The version of a container is often its digest.
    id: textIn(isContainer ? component.version : null) ?? textIn(component['bom-ref']),
    purl: textIn(component.purl),
    hashes: hashes.map((one) => [String(one.alg), String(one.content)] as const),
  }
}

/** Only what says which component it is. */
const kept = (component: JsonObject): JsonObject =>
  Object.fromEntries(
    ['bom-ref', 'type', 'name', 'version', 'purl', 'hashes'].flatMap((key) =>
      component[key] === undefined ? [] : [[key, component[key]]],
    ),
  )

const isImage = (target: TargetOrReason): target is Target => !('reason' in target) && target.package_purl === undefined

/** A link to a component of a document (BOM-Link): the document before its version, and the reference. */
const LINK = /^(urn:cdx:[^/#]*\/)[^#]*#(.*)$/i

/** The target of a reference: a component of this document, a package URL, or one in a link to another document. */
function targetOfRef(
  sent: string,
  { urn, byRef, whole }: Parts,
): { target: TargetOrReason; component: JsonObject | null } {
  const [, document, inDocument] = LINK.exec(sent) ?? []
  const ref = inDocument === undefined ? sent : decoded(inDocument)
  const isOwn = document === undefined || document.toLowerCase() === urn
  const component = byRef.get(sent) ?? (isOwn ? byRef.get(ref) : null) ?? null
  const product = whole === null ? null : targetOf(identityOf(whole))
  if (component === null) {
    const own = targetOf({ id: ref, purl: null, hashes: [] })
    if ('reason' in own || isImage(own)) return { target: own, component }
    // The other document is about a product that is not known here.
    if (product === null && !isOwn) return { target: { reason: 'product_not_known' }, component }
    return { target: within(product, own), component }
  }
  if (component === whole) return { target: product!, component }
  const own = targetOf(identityOf(component))
  if (isImage(own) || product === null) return { target: own, component }
  const inside = packageOf({ ...identityOf(component), id: null }, textIn(component.name))
  return { target: inside === null ? { reason: 'subcomponent_not_known' } : within(product, inside), component }
}

/** A package of a document about an image is the package in that image; of another product it is not known where. */
function within(product: TargetOrReason | null, inside: Omit<Target, 'scope_rank'>): TargetOrReason {
  if (product === null) return { ...inside, scope_rank: RANK.all }
  if ('reason' in product) return product
  return isImage(product) ? { ...inside, ...product } : { reason: 'product_not_an_image' }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The components that a vulnerability names as affected, else the one that the document is about. */
function affectedBy(
  { affects }: Pick<Vulnerability, 'affects'>,
  { whole }: Parts,
): NonNullable<Vulnerability['affects']> {
  const ref = whole && textIn(whole['bom-ref'])
  return affects && affects.length > 0 ? affects : ref ? [{ ref }] : []
}

const keyOf = ({ id }: Pick<Vulnerability, 'id'>, ref: string): string => JSON.stringify([id.toUpperCase(), ref])

interface Shared {
  readonly decided_by: string
  readonly issuedAt: string | null
  /**
   * Vulnerabilities without an analysis by what they affect, see `keyOf`. Dependency-Track lists a vulnerability once
   * for each component that has it, as one of the whole image.
   */
  readonly open: ReadonlySet<string>
}

function readStatement(
  { affects, ...sent }: Vulnerability,
  position: number,
  parts: Parts,
  { decided_by, issuedAt, open }: Shared,
): ParsedStatement {
  const vulnerability = sent.id
  const nothing = (reason: Ignored['reason']): ParsedStatement => ({
    ...{ vulnerability, content: null, decisions: [], ignored: [{ reason, product: null }] },
  })
  if (!VULNERABILITY.test(vulnerability)) return nothing('vulnerability_not_valid')
  const { analysis } = sent
  if (!analysis?.state) return nothing('no_analysis')
  const word = Object.hasOwn(STATES, analysis.state) ? STATES[analysis.state]! : undefined
  if (word === undefined) return nothing('unknown_status')
  const reason = analysis.justification || null
  if (reason !== null && !Object.hasOwn(JUSTIFICATION_OF, reason)) return nothing('unknown_justification')
  if (Buffer.byteLength(JSON.stringify(sent)) > MAX_STATEMENT_BYTES) return nothing('too_long')
  const time = analysis.lastUpdated ?? analysis.firstIssued
  const shared = {
    ...canonicalId(
      vulnerability,
      (sent.references ?? []).map(({ id }) => id).filter((id) => VULNERABILITY.test(id)),
    ),
    decision: word === 'affected' && analysis.response?.includes(WILL_NOT_FIX) ? WILL_NOT_FIX : word,
    justification: word === 'not_affected' && reason !== null ? JUSTIFICATION_OF[reason]! : null,
    decided_by,
    reason: (analysis.detail || (analysis.state === 'false_positive' ? 'false positive' : (reason ?? ''))).slice(
      0,
      MAX_WHY_CHARS,
    ),
    decided_at: time ? parseRfc3339(time) : issuedAt,
    statement_position: position,
  } as const
  const isSettled = (SETTLED as readonly string[]).includes(shared.decision)
  const named = affectedBy({ affects }, parts)
  if (named.length === 0) return nothing('no_product')
  const decisions: DecisionRow[] = []
  const ignored: Ignored[] = []
  for (const one of named) {
    const { target, component } = targetOfRef(one.ref, parts)
    // A link to the document itself goes out in another document.
    const affected = component === null ? one : { ...one, ref: component['bom-ref'] }
    const product = { affects: affected, ...(component && { component: kept(component) }) }
    if (one.versions && one.versions.length > 0) ignored.push({ reason: 'versions_not_supported', product: one.ref })
    else if (isSettled && open.has(keyOf(sent, one.ref))) ignored.push({ reason: 'no_analysis', product: one.ref })
    else if ('reason' in target) ignored.push({ reason: target.reason, product: one.ref })
    else if (Buffer.byteLength(JSON.stringify(product)) > MAX_PRODUCT_BYTES)
      ignored.push({ reason: 'too_long', product: one.ref })
    else decisions.push({ ...shared, ...target, product })
  }
  return { vulnerability, content: decisions.length > 0 ? sent : null, decisions, ignored }
}
