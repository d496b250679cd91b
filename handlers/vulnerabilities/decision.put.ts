import { z } from 'zod'
import { PutDecision, PutOutcome, putDecision } from '../../lib/decisions/index.ts'
import { access, body, params, route, sendJson } from '../../lib/http/index.ts'
import { vulnerabilityId } from '../../lib/supply-chain/exposure.ts'

const Params = z.object({ id: vulnerabilityId })

/**
 * PUT /vulnerabilities/{id}/decision: records what was decided about a vulnerability (docs/contract.md#decisions). The
 * findings stay in all lists and counts, and show the decision.
 */
export default route({
  summary: 'Decide on a vulnerability in a workload, an image, a namespace or everywhere',
  description:
    'Replaces what was put before for the same scope and package, which is kept as history; `decision: null` takes it ' +
    'back. The same decision again changes nothing.',
  answer: PutOutcome,
  also: { 409: 'As many decisions hold as may hold at once.' },
}).put('/vulnerabilities/:id/decision', access('supplychain'), params(Params), body(PutDecision), async (c) =>
  sendJson(c, await putDecision(c.get('deps').db.ingest, c.req.valid('param').id, c.req.valid('json'))),
)
