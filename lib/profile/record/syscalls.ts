/** The observed syscalls of a workload in its profile (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { count, envelope } from './common.ts'

const Distribution = z.strictObject({ ready: count, total: count, state: z.string() })

export const Syscalls = z
  .strictObject({
    ...envelope,
    observed: z
      .strictObject({ syscallCount: count, hash: z.string(), architectures: z.array(z.string()), updatedAt: zonedTime })
      .nullable(),
    capture: z.strictObject({ level: z.string(), complete: z.boolean(), incompletePods: count }).nullable(),
    cr: z
      .strictObject({
        name: z.string(),
        defaultAction: z.string(),
        mode: z.enum(['audit', 'enforce']),
        syscallCount: count,
        inSync: z.boolean(),
        missing: z.array(z.string()),
        extra: z.array(z.string()),
        distribution: Distribution,
        statusDistribution: Distribution.nullable(),
      })
      .nullable(),
    denials: z.strictObject({ total: count, syscalls: z.array(z.string()), lastSeen: zonedTime.nullable() }).nullable(),
  })
  .meta({ id: 'ProfileSyscalls' })
export type Syscalls = z.output<typeof Syscalls>
