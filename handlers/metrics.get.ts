import { z } from 'zod'
import { access, NoParameters, query, route } from '../lib/http/index.ts'
import { sendMetrics } from '../lib/telemetry/scrape.ts'

/** GET /metrics: the Prometheus text format (interop-core 1.10). Open, never fails. */
export default route({
  summary: 'Metrics in the text format of Prometheus',
  answer: { contentType: 'text/plain', schema: z.string() },
  database: false,
}).get('/metrics', access('open'), query(NoParameters, { unknown: 'ignored' }), sendMetrics)
