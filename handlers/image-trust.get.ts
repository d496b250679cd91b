import { z } from 'zod'
import { access, charge, clientLeft, filter, kib, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { ImageTrustAnswer, MAX_ANSWER_BYTES, MAX_RESULTS, VERDICTS } from '../lib/image-trust/index.ts'
import { documentedAs } from '../lib/openapi/declare.ts'

const DEFAULT_RESULTS = 200

const Query = z.object({
  namespace: filter('Results of this namespace'),
  workload_kind: filter('Results of workloads of this kind, in any case of letters'),
  workload_name: filter('Results of workloads of this name'),
  verdict: documentedAs(
    z
      .preprocess(
        (sent) => (typeof sent === 'string' && sent.trim() !== '' ? sent : null),
        z
          .enum(VERDICTS, { error: ({ input }) => `${JSON.stringify(input)} is not one of ${VERDICTS.join(', ')}` })
          .nullable(),
      )
      .default(null),
    { type: 'string', enum: ['', ...VERDICTS], description: 'Results with this verdict; blank is no filter.' },
  ),
  limit: pageLimit(DEFAULT_RESULTS, MAX_RESULTS),
})

/**
 * GET /image-trust: what the policy evaluator makes of the images of running containers (supply-chain, Image-trust response). It is asked each
 * time, for a namespace and a verdict; the rest is filtered, counted and put in order here.
 */
export default route({
  summary: 'What image trust policies make of the containers that run',
  answer: ImageTrustAnswer,
  database: false,
}).get(
  '/image-trust',
  access('read'),
  query(Query),
  // Without an evaluator there is nothing to hold (interop-supply-chain 3.10).
  charge((c) => (c.get('deps').imageTrust.isConfigured ? kib(MAX_ANSWER_BYTES) : 1)),
  async (c) => {
    const { namespace, workload_kind: workloadKind, workload_name: workloadName, verdict, limit } = c.req.valid('query')
    const asked = { namespace, verdict, workloadKind, workloadName }
    return sendJson(c, await c.get('deps').imageTrust.read(asked, limit, clientLeft(c)))
  },
)
