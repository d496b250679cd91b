/** A parameter: what it is about in one sentence, and how its values are written. */
export interface Known {
  readonly brief: string
  readonly isRequired?: boolean
  readonly repeats?: boolean
  readonly values?: readonly string[]
  readonly max?: number
}
