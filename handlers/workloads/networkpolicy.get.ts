import { z } from 'zod'
import { access, charge, kib, params, query, route, sendTagged } from '../../lib/http/index.ts'
import { FACTS_BYTES, GenerateQuery, MadeManifest, madeAnswers, makePolicy } from '../../lib/policies/index.ts'
import { WorkloadPath } from '../../lib/seccomp/index.ts'

/**
 * GET /workloads/{namespace}/{kind}/{name}/networkpolicy: a policy that allows what was seen of a workload
 * (docs/contract.md#network-policies).
 */
export default route({
  summary: 'Make a network policy for a workload',
  description:
    'It allows the connections that were seen, and no others. Nothing is applied. Comments, in JSON an annotation, ' +
    'say what was left out. The same edges give the same text.',
  tag: 'policies',
  ...madeAnswers,
  answer: [{ contentType: 'application/yaml', schema: z.string() }, MadeManifest],
}).get(
  '/workloads/:namespace/:kind/:name/networkpolicy',
  access('read'),
  params(WorkloadPath),
  query(GenerateQuery),
  charge(kib(FACTS_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    return sendTagged(c, await makePolicy(db, c.req.valid('param'), c.req.valid('query'), config))
  },
)
