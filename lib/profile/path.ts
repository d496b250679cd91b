import { z } from 'zod'
import { workloadSegment } from '../runtime/reads/index.ts'

/** The path of the routes about the profile of a workload (docs/contract.md#workload-profiles). */
export const ProfilePath = z.object({
  namespace: workloadSegment('The namespace of a workload'),
  kind: workloadSegment('Its kind, `Pod` for a bare pod'),
  name: workloadSegment('Its name'),
})
