import { z } from 'zod'
import { AttestationResult, readResult } from '../../lib/attestations/stored-result.ts'
import { access, charge, NoParameters, noData, params, query, route, sendJson } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'

/** What a result may cost while it is read, redacted and sent (interop-supply-chain 3.10). */
const RESULT_KIB = 512

const Params = z.object({ digest })

/**
 * GET /images/{digest}/attestation: what the latest check of an image for signatures and attestations found (supply-chain, Attestation result;
 * interop-supply-chain 3.7); 404 `No data found` for one that was never checked, which is not the same as unsigned.
 */
export default route({
  summary: 'The signatures and attestations of an image, as they were last checked',
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
