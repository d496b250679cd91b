/** The parts of the profile of a workload that the command line reads. */
export interface Dimension {
  readonly status: string
  readonly coverage: { readonly level: string; readonly note: string }
  readonly reasons: readonly { readonly code: string; readonly message: string }[]
}

interface Peers {
  readonly peers: number
  readonly external: number
}

export interface Profile {
  readonly workload: {
    readonly namespace: string
    readonly kind: string
    readonly name: string
    readonly pods: { readonly live: number }
  }
  readonly version: { readonly revision: number; readonly createdAt: string } | null
  readonly snapshotPending: boolean
  readonly posture: { readonly status: string; readonly unknownDimensions: readonly string[] }
  readonly findings: readonly {
    readonly id: string
    readonly severity: string
    readonly title: string
    readonly detail: string
  }[]
  readonly controls: readonly {
    readonly control: string
    readonly state: string | null
    readonly detail: string
    readonly inSync: boolean | null
  }[]
  readonly readiness: readonly { readonly id: string; readonly ok: boolean | null; readonly message: string }[]
  readonly drift: {
    readonly evaluated: readonly string[]
    readonly notEvaluated: readonly {
      readonly type: string
      readonly container: string | null
      readonly reason: string
    }[]
    readonly items: readonly { readonly type: string; readonly severity: string; readonly container: string | null }[]
  }
  readonly capabilities: {
    readonly containers: readonly {
      readonly container: string
      readonly evidence: string
      readonly reason: string | null
      readonly used: readonly { readonly capability: string }[]
      readonly denied: readonly { readonly capability: string }[]
      readonly recommendation: { readonly add: readonly string[] } | null
    }[]
  }
  readonly dimensions: {
    readonly network: Dimension & {
      readonly summary: { readonly ingress: Peers; readonly egress: Peers }
      readonly truncated: boolean
    }
    readonly syscalls: Dimension & {
      readonly observed: { readonly syscallCount: number } | null
      readonly capture: { readonly level: string; readonly complete: boolean } | null
      readonly cr: { readonly name: string; readonly mode: string; readonly missing: readonly string[] } | null
      readonly denials: { readonly total: number; readonly syscalls: readonly string[] } | null
    }
    readonly podSecurity: Dimension & {
      readonly level: string | null
      readonly levelConfidence: string | null
      readonly unevaluatedChecks: readonly string[]
    }
    readonly images: Dimension & {
      readonly containers: readonly {
        readonly name: string
        readonly running: readonly { readonly digest: string }[]
      }[]
      readonly truncated: boolean
      readonly vulnerabilities:
        | (Readonly<Record<'critical' | 'high' | 'medium' | 'low' | 'fixable' | 'inUse' | 'scannedDigests', number>> & {
            readonly tiers: Readonly<Record<'P0' | 'P1' | 'P2' | 'Background', number>>
            readonly oldestScanAt: string
          })
        | null
      readonly supplyChain: {
        readonly verdict: string
        readonly reason: string | null
        readonly container: string | null
        readonly imageTrust: { readonly available: boolean; readonly total: number; readonly wouldDeny: number } | null
      } | null
    }
    readonly compute: Dimension & {
      readonly containers: readonly {
        readonly pod: string
        readonly container: string
        readonly cpuUsageMillis: number | null
        readonly memWorkingSetBytes: number | null
      }[]
      readonly truncated: boolean
    }
  }
}

export const workloadName = ({ workload: { namespace, kind, name } }: Profile): string => `${namespace}/${kind}/${name}`

/** The digests that run, each once. */
export const runningDigests = ({ dimensions }: Profile): ReadonlySet<string> =>
  new Set(dimensions.images.containers.flatMap(({ running }) => running.map(({ digest }) => digest)))
