import { z } from 'zod'
import { VERDICTS } from '../lib/attestations/entry.ts'
import { AttestationPage, readSummaries } from '../lib/attestations/result-list.ts'
import { access, chargeRows, filter, filterText, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { afterDigest } from '../lib/images/index.ts'
import { documentedAs } from '../lib/openapi/declare.ts'

const DEFAULT_RESULTS = 100
const MAX_RESULTS = 500
/** The read budget is charged this for each result. */
const RESULT_BYTES = 24 * 1_024

const Query = z.object({
  verdict: documentedAs(filterText.pipe(z.enum(VERDICTS).nullable()), {
    type: 'string',
    enum: [...VERDICTS, ''],
    description: 'Only results with this verdict; blank is no filter.',
  }),
  repository: filter('Only results of this repository, by its whole name'),
  limit: pageLimit(DEFAULT_RESULTS, MAX_RESULTS),
  after: afterDigest,
})

/**
 * GET /attestations: a summary of the latest check of each image, by digest
 * (docs/contract.md#signatures-and-attestations).
 */
export default route({
  summary: 'List the results of checking images for signatures',
  answer: AttestationPage,
}).get('/attestations', access('read'), query(Query), chargeRows<typeof Query>(RESULT_BYTES, 1), async (c) => {
  const { verdict, repository, limit, after } = c.req.valid('query')
  const { db, config } = c.get('deps')
  const retentionDays = config.attestationRetentionDays
  return sendJson(c, await readSummaries(db.read, { verdict, repository, retentionDays }, { limit, after }))
})
