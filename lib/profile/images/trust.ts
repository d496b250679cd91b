/** The evaluator's judgement of the images of a workload (docs/contract.md#workload-profiles). */
import type { ImageTrust } from '../../image-trust/index.ts'
import type { WorkloadKey } from '../built.ts'
import type { Images, ProfileImageTrust } from '../record/images.ts'

/**
 * Returns the judgement, for `supplyChain.imageTrust`; null where nothing runs. It never fails: an evaluator that does
 * not answer gives `available: false`. Only the profile asks, and neither posture, readiness nor hash depend on it.
 */
export const withImageTrust = async (
  trust: ImageTrust,
  key: WorkloadKey,
  { supplyChain }: Pick<Images, 'supplyChain'>,
): Promise<ProfileImageTrust | null> => (supplyChain === null ? null : trust.workloads.read(key))
