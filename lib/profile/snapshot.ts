/** The part of a profile that makes a version: no times, counts or verdicts (docs/contract.md#workload-profiles). */
import type { ContainerContext, Level, PodSecurity } from './record/pod-security.ts'

/** Rules of a snapshot; of more, the first in their order. */
export const MAX_SNAPSHOT_RULES = 2_000

export interface SnapshotRule {
  readonly direction: 'ingress' | 'egress'
  readonly peer: string
  readonly port: number | null
  readonly protocol: string
}

export interface PodSecuritySnapshot {
  readonly level: Level | null
  /** The pod without its failing checks; null without containers. */
  readonly pod: Omit<PodSecurity['pod'], 'failing'> | null
  readonly containers: Readonly<
    Record<string, { readonly kind: 'init' | 'regular' | 'ephemeral'; readonly securityContext: ContainerContext }>
  >
}

export interface Snapshot {
  readonly network: { readonly rules: readonly SnapshotRule[] }
  readonly syscalls: {
    readonly syscalls: readonly string[] | null
    readonly captureLevel: string | null
    readonly cr: { readonly name: string; readonly defaultAction: string; readonly hash: string } | null
  }
  readonly podSecurity: PodSecuritySnapshot
  /** Of each container that is not stale its running digests, sorted. */
  readonly images: { readonly containers: Readonly<Record<string, readonly string[]>> }
}
