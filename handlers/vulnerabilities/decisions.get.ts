import { z } from 'zod'
import { DecisionPage, readDecisions } from '../../lib/decisions/index.ts'
import { access, chargeRows, orFirstPage, pageLimit, params, query, route, sendJson } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { vulnerabilityId } from '../../lib/supply-chain/exposure.ts'

const DEFAULT_DECISIONS = 100
const MAX_DECISIONS = 500
/** The read budget is charged this for each decision: its texts and the reason why it ended. */
const DECISION_BYTES = 16 * 1_024

const Params = z.object({ id: vulnerabilityId })
const Query = z.object({
  limit: pageLimit(DEFAULT_DECISIONS, MAX_DECISIONS),
  after: documentedAs(
    orFirstPage(
      z
        .string()
        .regex(/^\d+$/, 'expected the nextAfter of a page of this list')
        .transform((text) => Math.min(Number(text), Number.MAX_SAFE_INTEGER)),
      Number.MAX_SAFE_INTEGER,
    ),
    { type: 'integer', minimum: 0, description: 'The id of the last decision of the page before.' },
  ),
})

/**
 * GET /vulnerabilities/{id}/decisions: who decided what about a vulnerability, the newest first
 * (docs/contract.md#decisions). A vulnerability that nobody decided on has an empty list.
 */
export default route({
  summary: 'List the decisions about a vulnerability, with their history',
  answer: DecisionPage,
}).get(
  '/vulnerabilities/:id/decisions',
  access('read'),
  params(Params),
  query(Query),
  chargeRows<typeof Query>(DECISION_BYTES, 1),
  async (c) => sendJson(c, await readDecisions(c.get('deps').db.read, c.req.valid('param').id, c.req.valid('query'))),
)
