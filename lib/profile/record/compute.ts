/** The latest compute samples of a workload in its profile (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { count, envelope } from './common.ts'

export const MAX_CONTAINERS = 50
const amount = z.number().min(0).nullable()

export const Compute = z
  .strictObject({
    ...envelope,
    containers: z
      .array(
        z.strictObject({
          pod: z.string(),
          container: z.string(),
          cpuRequestMillis: amount,
          cpuLimitMillis: amount,
          memRequestBytes: amount,
          memLimitBytes: amount,
          cpuUsageMillis: amount,
          memWorkingSetBytes: amount,
          oomKills: count,
          throttledRatio: z.number().min(0).max(1).nullable().describe('Null without periods.'),
          updatedAt: zonedTime,
        }),
      )
      .max(MAX_CONTAINERS),
    truncated: z.boolean(),
  })
  .meta({ id: 'ProfileCompute' })
export type Compute = z.output<typeof Compute>
