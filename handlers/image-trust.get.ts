import { z } from 'zod'
import { access, charge, clientLeft, filter, kib, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { ImageTrustAnswer, MAX_ANSWER_BYTES, MAX_RESULTS, VERDICTS } from '../lib/image-trust/index.ts'
import { documentedAs } from '../lib/openapi/declare.ts'

const DEFAULT_RESULTS = 200

const Query = z.object({
  namespace: filter('Only results of this namespace'),
  workload_kind: filter('Only results of workloads of this kind, in any case'),
  workload_name: filter('Only results of workloads with this name'),
  verdict: documentedAs(
    z
      .preprocess(
        (sent) => (typeof sent === 'string' && sent.trim() !== '' ? sent : null),
        z
          .enum(VERDICTS, { error: ({ input }) => `${JSON.stringify(input)} is not one of ${VERDICTS.join(', ')}` })
          .nullable(),
      )
      .default(null),
    { type: 'string', enum: ['', ...VERDICTS], description: 'Only results with this verdict; blank is no filter.' },
  ),
  limit: pageLimit(DEFAULT_RESULTS, MAX_RESULTS),
})

/**
 * GET /image-trust: the evaluator's judgement of the images of running containers (docs/contract.md#image-trust). Each
 * request asks the evaluator, which filters by namespace and verdict; the broker filters by workload, counts and sorts.
 */
export default route({
  summary: 'List how image trust policies judge the running containers',
  answer: ImageTrustAnswer,
  database: false,
}).get(
  '/image-trust',
  access('read'),
  query(Query),
  // Without an evaluator there is no answer to hold in memory.
  charge((c) => (c.get('deps').imageTrust.isConfigured ? kib(MAX_ANSWER_BYTES) : 1)),
  async (c) => {
    const { namespace, workload_kind: workloadKind, workload_name: workloadName, verdict, limit } = c.req.valid('query')
    const asked = { namespace, verdict, workloadKind, workloadName }
    return sendJson(c, await c.get('deps').imageTrust.read(asked, limit, clientLeft(c)))
  },
)
