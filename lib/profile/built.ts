/** A profile as it is computed, before the answer of the image-trust evaluator is added to it. */
import type { Profile } from './record/profile.ts'
import type { Snapshot } from './snapshot.ts'

export interface WorkloadKey {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

export interface BuiltProfile {
  /** `images.supplyChain.imageTrust` is null here. */
  readonly profile: Profile
  readonly snapshot: Snapshot
  /** Whether the stored flows were counted once; until then `network` is unknown, and the snapshot lacks its rules. */
  readonly areFlowsCounted: boolean
}
