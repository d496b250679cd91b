import { z } from 'zod'
import { VERDICTS } from '../lib/attestations/entry.ts'
import { AttestationPage, readSummaries } from '../lib/attestations/result-list.ts'
import { access, chargeRows, filter, filterText, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { afterDigest } from '../lib/images/index.ts'
import { documentedAs } from '../lib/openapi/declare.ts'

const DEFAULT_RESULTS = 100
const MAX_RESULTS = 500
/** Bytes a result may cost while its list is built (interop-supply-chain 3.10). */
const RESULT_BYTES = 24 * 1_024

const Query = z.object({
  verdict: documentedAs(filterText.pipe(z.enum(VERDICTS).nullable()), {
    type: 'string',
    enum: [...VERDICTS, ''],
    description: 'Results of this verdict; blank is no filter.',
  }),
  repository: filter('Results of this repository, by its whole name'),
  limit: pageLimit(DEFAULT_RESULTS, MAX_RESULTS),
  after: afterDigest,
})

/**
 * GET /attestations: what the latest check of each image found, in short, in the order of the digests (supply-chain, Attestation summary
 * item; interop-supply-chain 3.7).
 */
export default route({
  summary: 'The images that were checked for signatures, with their verdicts',
  answer: AttestationPage,
}).get('/attestations', access('read'), query(Query), chargeRows<typeof Query>(RESULT_BYTES, 1), async (c) => {
  const { verdict, repository, limit, after } = c.req.valid('query')
  const { db, config } = c.get('deps')
  const retentionDays = config.attestationRetentionDays
  return sendJson(c, await readSummaries(db.read, { verdict, repository, retentionDays }, { limit, after }))
})
