import { z } from 'zod'
import { access, params, route } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import { PayloadOutcome, PostedFindings, payload, payloadAnswers, storePayload } from '../../lib/supply-chain/index.ts'

const Params = z.object({ digest })

/**
 * POST /images/{digest}/vulnerabilities: stores the findings of one source, replacing its last ones
 * (docs/contract.md#findings).
 */
export default route({
  summary: 'Store the vulnerabilities that one source found in an image',
  description: 'Different content replaces the stored findings of the same source only if its scan is strictly newer.',
  answer: PayloadOutcome,
  also: payloadAnswers,
}).post('/images/:digest/vulnerabilities', access('supplychain'), params(Params), payload(PostedFindings), (c) => {
  const { db } = c.get('deps')
  return storePayload(c, 'vulnerabilities', c.req.valid('param').digest, ({ header, rows }) =>
    db.ingest.json((sql) => sql`select store_findings(${header}::text::json, ${rows}::text)`),
  )
})
