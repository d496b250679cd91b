import type { PolicyFormat } from '../supply-chain/index.ts'

export interface Options {
  readonly format: PolicyFormat
  /** As answers write it. */
  readonly shownFormat: string
  readonly isEnforced: boolean
  /** Null for the cluster. */
  readonly namespace: string | null
  readonly annotationPrefix: string
}
