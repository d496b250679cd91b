import { z } from 'zod'
import { AttestationResult, readResult } from '../../lib/attestations/stored-result.ts'
import { access, charge, NoParameters, noData, params, query, route, sendJson } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'

/** The read budget is charged this for a result as read, redacted and sent. */
const RESULT_KIB = 512

const Params = z.object({ digest })

/**
 * GET /images/{digest}/attestation: the latest result of checking an image for signatures
 * (docs/contract.md#signatures-and-attestations). An image that was never checked is 404, which is not the same as
 * unsigned.
 */
export default route({
  summary: 'Get the signatures and attestations of an image',
  answer: AttestationResult,
  also: { 404: 'No result for this digest: `No data found`.' },
  tag: 'attestations',
}).get(
  '/images/:digest/attestation',
  access('read'),
  params(Params),
  query(NoParameters),
  charge(RESULT_KIB),
  async (c) => {
    const { db, config } = c.get('deps')
    const result = await readResult(
      db.read,
      c.req.valid('param').digest,
      config.attestationRetentionDays,
      config.wireNames,
    )
    if (result === null) throw noData()
    return sendJson(c, result)
  },
)
