import { z } from 'zod'
import { readSizing, WorkloadSizing, withoutHistory } from '../../lib/compute/sizing/index.ts'
import { access, charge, clamped, kib, params, query, route, sendJson } from '../../lib/http/index.ts'
import { workloadPart } from '../../lib/runtime/reads/index.ts'

const DEFAULT_DAYS = 7
const MAX_DAYS = 90
/** The read budget is charged this: 200 containers with 20 settings each, as read and as sent. */
const MAX_BYTES = 4 * 1024 * 1024

const Params = z.object({
  namespace: workloadPart('The namespace of a workload'),
  kind: workloadPart('Its kind, `Pod` for a bare pod'),
  name: workloadPart('Its name'),
})
const Query = z.object({ days: clamped(DEFAULT_DAYS, MAX_DAYS, 'Days of the calendar (UTC) with today') })

/**
 * GET /compute/workloads/{namespace}/{kind}/{name}: how the containers of a workload used CPU and memory over all its
 * pods, against their requests and limits (docs/contract.md#sizing-of-workloads). Always 200.
 */
export default route({
  summary: 'Get what size a workload needs',
  description:
    'Percentiles of CPU (means of minutes) and of the working set (maxima of minutes) over the minutes of all pods, ' +
    'gone ones too. `fit` has the rules that hold. An unknown value is null, and `reason` says why.',
  answer: WorkloadSizing,
}).get(
  '/compute/workloads/:namespace/:kind/:name',
  access('read'),
  params(Params),
  query(Query),
  charge(kib(MAX_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const workload = c.req.valid('param')
    const keptDays = config.computeHistoryRetentionDays
    if (keptDays === 0) return sendJson(c, JSON.stringify(withoutHistory(workload)))
    const days = Math.min(c.req.valid('query').days, keptDays)
    return sendJson(c, JSON.stringify(await readSizing(db.read, workload, days)))
  },
)
