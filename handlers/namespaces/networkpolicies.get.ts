import { z } from 'zod'
import { access, charge, kib, params, pathText, query, route, sendTagged } from '../../lib/http/index.ts'
import { FACTS_BYTES, GenerateQuery, MadeManifests, madeAnswers, makePolicies } from '../../lib/policies/index.ts'

const Path = z.object({ namespace: pathText.describe('The namespace.') })

/**
 * GET /namespaces/{namespace}/networkpolicies: policies that allow what was seen of all workloads of a namespace
 * (docs/contract.md#network-policies).
 */
export default route({
  summary: 'Make network policies for all workloads of a namespace',
  description:
    'The first one denies everything, the others allow the connections that were seen of a workload. Nothing is ' +
    'applied.',
  ...madeAnswers,
  answer: [{ contentType: 'application/yaml', schema: z.string() }, MadeManifests],
}).get(
  '/namespaces/:namespace/networkpolicies',
  access('read'),
  params(Path),
  query(GenerateQuery),
  charge(kib(FACTS_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    return sendTagged(c, await makePolicies(db, c.req.valid('param').namespace, c.req.valid('query'), config))
  },
)
