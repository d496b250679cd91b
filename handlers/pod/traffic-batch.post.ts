import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { FlowBatch } from '../../lib/traffic/index.ts'

/** POST /pod/traffic/batch: stores the new flows of an array; returns how many were new (docs/contract.md#flows). */
export default route({
  summary: 'Store an array of flows',
  description:
    'Flows that are stored already are skipped. One bad element refuses the whole array; the error names its index.',
  answer: z.int().min(0).describe('The number of flows stored.'),
}).post('/pod/traffic/batch', access('ingest'), body(FlowBatch), async (c) => {
  const { flows, metrics } = c.get('deps')
  const batch = c.req.valid('json')
  const inserted = await flows.write(batch, { records: false })
  metrics.flows.labels('inserted').inc(inserted.length)
  metrics.flows.labels('duplicate').inc(batch.length - inserted.length)
  return sendJson(c, String(inserted.length))
})
