/** The head of a VEX document, in any format. */
export interface VexHead {
  /** An IRI. */
  readonly id: string
  /** A UUID. */
  readonly serial: string
  readonly author: string
  /** RFC 3339: the newest decision. */
  readonly timestamp: string
  readonly digest: string
  /** Empty if unknown. */
  readonly repository: string
}
