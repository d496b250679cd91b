import { z } from 'zod'
import { access, charge, kib, NoParameters, params, query, route, sendJson } from '../../lib/http/index.ts'
import {
  capabilityRetentionDays,
  MAX_ROWS,
  MORE_ROWS,
  ROW_BYTES,
  readCapabilities,
  WorkloadCapabilities,
} from '../../lib/runtime/capabilities/index.ts'
import { workloadSegment } from '../../lib/runtime/reads/index.ts'

const Params = z.object({
  namespace: workloadSegment('The namespace of a workload'),
  kind: workloadSegment('Its kind, `Pod` for a bare pod'),
  name: workloadSegment('Its name'),
})

/**
 * GET /workloads/{namespace}/{kind}/{name}/capabilities: the Linux capabilities that the containers of a workload used,
 * and which of them they need (docs/contract.md#capabilities). Always 200.
 */
export default route({
  summary: 'Show which Linux capabilities a workload uses',
  description:
    'Used, denied and probed capabilities of each container, over all its images. A recommendation is made only from ' +
    'sufficient evidence: all running images were watched from the start of their containers and over the whole ' +
    'window.',
  answer: WorkloadCapabilities,
}).get(
  '/workloads/:namespace/:kind/:name/capabilities',
  access('read'),
  params(Params),
  query(NoParameters, { unknown: 'ignored' }),
  charge(kib((MAX_ROWS + MORE_ROWS) * ROW_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const found = await readCapabilities(db.read, {
      ...c.req.valid('param'),
      windowHours: config.capabilityEvidenceWindowHours,
      runningWindowSecs: config.imageRunningWindowSecs,
      retentionDays: capabilityRetentionDays(config),
    })
    return sendJson(c, JSON.stringify(found))
  },
)
