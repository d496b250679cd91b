import { z } from 'zod'
import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { FlowBatch } from '../../lib/traffic/index.ts'

/** POST /pod/traffic/batch: stores what is new of an array of flows; answers the number of rows inserted. */
export default route({
  summary: 'Stores what is new of an array of flows',
  description: 'One bad element refuses the whole array, by its index.',
  answer: z.int().min(0).describe('The number of flows stored.'),
}).post('/pod/traffic/batch', access('ingest'), body(FlowBatch), async (c) => {
  const { flows, metrics } = c.get('deps')
  const batch = c.req.valid('json')
  const inserted = await flows.write(batch, { records: false })
  metrics.flows.labels('inserted').inc(inserted.length)
  metrics.flows.labels('duplicate').inc(batch.length - inserted.length)
  return sendJson(c, String(inserted.length))
})
