import { attestationRetention } from './attestation-retention.ts'
import { auditRetention } from './audit-retention.ts'
import { computeFold } from './compute-fold.ts'
import { computeRetention } from './compute-retention.ts'
import { deadPodRetention } from './dead-pod-retention.ts'
import { flowEdges } from './flow-edges.ts'
import { imageInventoryRetention } from './image-inventory-retention.ts'
import type { Job } from './job.ts'
import { lateResolve } from './late-resolve.ts'
import { profileRetention } from './profile-retention.ts'
import { profileSnapshots } from './profile-snapshots.ts'
import { runtimeRetention } from './runtime-retention.ts'
import { seccompDenialRetention } from './seccomp-denial-retention.ts'
import { staleSweep } from './stale-sweep.ts'
import { supplyChainRefresh } from './supply-chain-refresh.ts'
import { trafficRetention } from './traffic-retention.ts'
import { versionCheck } from './version-check.ts'

/** Jobs of a chain run one after the other, in this order; chains run concurrently. */
export const chains: readonly (readonly Job[])[] = [
  [lateResolve, staleSweep],
  [auditRetention, deadPodRetention],
  [trafficRetention],
  [flowEdges],
  [imageInventoryRetention],
  [supplyChainRefresh],
  [attestationRetention],
  [seccompDenialRetention],
  [runtimeRetention],
  [computeRetention, computeFold],
  [profileSnapshots],
  [profileRetention],
  [versionCheck],
]

export const jobs: readonly Job[] = chains.flat()
