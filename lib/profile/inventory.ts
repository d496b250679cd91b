/** The rows of the image inventory of one workload, as its profile reads them. */

/** A container with one of its digests. Times are RFC 3339 with `Z`. */
export interface InventoryRow {
  readonly container: string
  readonly kind: 'init' | 'regular' | 'ephemeral'
  readonly digest: string
  readonly imageRef: string
  readonly state: 'running' | 'waiting' | 'terminated' | null
  readonly stateReason: string | null
  readonly ranAsInit: boolean
  readonly lastPodName: string | null
  readonly firstSeen: string
  readonly lastSeen: string
  /** `is_running` of the database. */
  readonly isRunning: boolean
  /** Seen within the running window, or its last reporting pod is alive. */
  readonly isCurrent: boolean
  /** As stored: known keys only, `{}` where it was not reported. */
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly podSecurity: Readonly<Record<string, unknown>>
}
