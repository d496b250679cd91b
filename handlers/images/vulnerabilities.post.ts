import { z } from 'zod'
import { access, params, route } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'
import { PayloadOutcome, PostedFindings, payload, payloadAnswers, storePayload } from '../../lib/supply-chain/index.ts'

const Params = z.object({ digest })

/** POST /images/{digest}/vulnerabilities: stores what one source found in an image, in place of what it found before (supply-chain, States). */
export default route({
  summary: 'Stores what one source found in an image, in place of what it found before',
  description: 'Only a strictly newer scan replaces other content.',
  answer: PayloadOutcome,
  also: payloadAnswers,
}).post('/images/:digest/vulnerabilities', access('supplychain'), params(Params), payload(PostedFindings), (c) => {
  const { db } = c.get('deps')
  return storePayload(c, 'vulnerabilities', c.req.valid('param').digest, ({ header, rows }) =>
    db.ingest.json((sql) => sql`select store_findings(${header}::text::json, ${rows}::text)`),
  )
})
