import { access, body, route, sendJson } from '../../lib/http/index.ts'
import { FlowPost, TrafficRow } from '../../lib/traffic/index.ts'

/**
 * POST /pod/traffic: stores one flow; returns the stored row with its peer, or null for a duplicate
 * (docs/contract.md#flows).
 */
export default route({
  summary: 'Store one flow',
  description: 'Returns the stored row with its peer, or null for a duplicate.',
  answer: TrafficRow.nullable(),
}).post('/pod/traffic', access('ingest'), body(FlowPost), async (c) => {
  const { flows, metrics } = c.get('deps')
  const [row] = await flows.write([c.req.valid('json')], { records: true })
  metrics.flows.labels(row ? 'inserted' : 'duplicate').inc()
  return sendJson(c, JSON.stringify(row ?? null))
})
