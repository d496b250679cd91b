/** A VEX document as it is stored (docs/contract.md#decisions). */
import type { DecisionWord, Justification } from '../decisions/words.ts'

export const VEX_FORMATS = ['openvex', 'cyclonedx'] as const
export type VexFormat = (typeof VEX_FORMATS)[number]

export const MAX_STATEMENTS = 5_000
/** Products of one statement, and subcomponents of one product. */
export const MAX_PRODUCTS = 1_000
/** Decisions of one document: a statement gives one for each product and subcomponent. */
export const MAX_DOCUMENT_DECISIONS = 5_000
/** A longer statement, without its products, or a longer product is ignored. Nothing is cut. */
export const MAX_STATEMENT_BYTES = 8 * 1_024
export const MAX_PRODUCT_BYTES = 2 * 1_024
export const MAX_DOCUMENT_ID_CHARS = 512

/** Why a statement, or one of its products, was not applied. */
export const REASONS = [
  'vulnerability_not_valid',
  'unknown_status',
  'unknown_justification',
  'justification_missing',
  'no_analysis',
  'no_product',
  'product_not_known',
  'product_without_digest',
  'product_not_an_image',
  'subcomponent_not_known',
  'versions_not_supported',
  'too_long',
  'too_many',
] as const
export type Reason = (typeof REASONS)[number]

/** Columns of `vuln_decision` that a statement gives. */
export interface DecisionRow {
  readonly vuln_id: string
  /** Its other ids. */
  readonly aliases: readonly string[]
  readonly scope_rank: number
  readonly image_digest?: string | undefined
  readonly image_arch?: string | undefined
  readonly repository?: string | undefined
  readonly package_name?: string | undefined
  readonly package_purl?: string | undefined
  readonly decision: DecisionWord
  readonly justification: Justification | null
  readonly decided_by: string
  readonly reason: string
  /** Naive UTC; null where the document has no time. */
  readonly decided_at: string | null
  readonly statement_position: number
  /** As it was sent, for the way out. */
  readonly product: object
}

/** A product that was not applied. */
export interface Ignored {
  readonly reason: Reason
  /** As the document names it; null where the whole statement is meant. */
  readonly product: string | null
}

export interface ParsedStatement {
  readonly vulnerability: string | null
  /** Without products, as it was sent; null where it gives no decision. */
  readonly content: object | null
  readonly decisions: readonly DecisionRow[]
  readonly ignored: readonly Ignored[]
}

export interface ParsedDocument {
  readonly format: VexFormat
  readonly id: string
  readonly version: number
  readonly author: string
  readonly issuedAt: string | null
  readonly statements: readonly ParsedStatement[]
}
