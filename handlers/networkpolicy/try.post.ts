import { z } from 'zod'
import { moment, readRange } from '../../lib/flows/index.ts'
import { access, charge, filter, HttpError, header, kib, query, route, sendJson } from '../../lib/http/index.ts'
import { withPayload } from '../../lib/http/request/body.ts'
import { documentedBody } from '../../lib/http/request/validate.ts'
import { MAX_POLICIES_BYTES } from '../../lib/limits/limits.ts'
import {
  CONTENT_TYPES,
  FACTS_BYTES,
  formatOf,
  MAX_POLICIES,
  PolicyDocuments,
  PolicyTrial,
  parsePolicies,
  textOf,
  trialOf,
} from '../../lib/policies/index.ts'

const Query = z.object({
  since: moment('Edges that had a new flow at this time or later'),
  until: moment('Edges that were first seen before this time'),
  namespace: filter('Only edges with an end in this namespace'),
})

/** POST /networkpolicy/try: what policies would have denied of what was seen (docs/contract.md#network-policies). */
export default route({
  summary: 'Try network policies on the flows that were seen',
  description:
    'Stores and applies nothing. Every edge with an end that one of the policies isolates is judged by all of them ' +
    'together, as the documentation of the Kubernetes API and of Cilium says.',
  answer: PolicyTrial,
}).post(
  '/networkpolicy/try',
  access('read'),
  query(Query),
  documentedBody({
    schema: PolicyDocuments,
    maxBytes: MAX_POLICIES_BYTES,
    contentTypes: CONTENT_TYPES,
    description: `At most ${MAX_POLICIES_BYTES} bytes and ${MAX_POLICIES} policies. Unknown fields are refused.`,
  }),
  charge(kib(FACTS_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { since, until, namespace } = c.req.valid('query')
    const format = formatOf(header(c, 'content-type'))
    const policies = await withPayload(c, { maxBytes: MAX_POLICIES_BYTES, codings: ['identity'] }, (bytes) =>
      parsePolicies(textOf(bytes), format),
    )
    const range = await readRange(db.read, since, until, config.trafficRetentionDays)
    if (range === null) throw new HttpError(400, 'Query deserialize error: until: expected no time before since')
    const trial = await trialOf(db, policies, range, namespace, config.flowEdgeRetentionDays)
    return sendJson(c, JSON.stringify(trial))
  },
)
