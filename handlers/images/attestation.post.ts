import { z } from 'zod'
import { postedResult, resultAnswers, storeResult } from '../../lib/attestations/index.ts'
import { access, params, route } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'

const Params = z.object({ digest })

/** POST /images/{digest}/attestation: stores what checking an image for signatures and attestations gave (supply-chain, States). */
export default route({
  summary: 'Stores what checking an image for signatures and attestations gave',
  description:
    'A strictly newer result replaces another one. The same result again is 200, whenever it was checked. One that is sent as verified but names no signer is stored unverified, and the verdict derived again where none is left.',
  answer: null,
  also: resultAnswers,
}).post('/images/:digest/attestation', access('supplychain'), params(Params), postedResult, (c) => {
  const { db } = c.get('deps')
  return storeResult(c, c.req.valid('param').digest, (document) =>
    db.ingest((sql) => sql`select store_attestation(${document}::text::json) as outcome`),
  )
})
