import { z } from 'zod'
import { postedResult, resultAnswers, storeResult } from '../../lib/attestations/index.ts'
import { access, params, route } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'

const Params = z.object({ digest })

/**
 * POST /images/{digest}/attestation: stores a result of checking an image
 * (docs/contract.md#signatures-and-attestations).
 */
export default route({
  summary: 'Store the result of checking an image for signatures',
  description:
    'A strictly newer result replaces the stored one. The same result is 200, whenever it was checked. A signature ' +
    'sent as verified that names no signer is stored as unverified; if no verified signature is left, the verdict ' +
    'is derived again.',
  answer: null,
  also: resultAnswers,
}).post('/images/:digest/attestation', access('supplychain'), params(Params), postedResult, (c) => {
  const { db } = c.get('deps')
  return storeResult(c, c.req.valid('param').digest, (document) =>
    db.ingest((sql) => sql`select store_attestation(${document}::text::json) as outcome`),
  )
})
