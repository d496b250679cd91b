import { z } from 'zod'
import { access, NoParameters, query, route } from '../lib/http/index.ts'
import { sendMetrics } from '../lib/telemetry/scrape.ts'

/** GET /metrics: metrics in the Prometheus text format. Needs no token and never fails. */
export default route({
  summary: 'Get metrics in the Prometheus text format',
  answer: { contentType: 'text/plain', schema: z.string() },
  database: false,
}).get('/metrics', access('open'), query(NoParameters, { unknown: 'ignored' }), sendMetrics)
