import { z } from 'zod'
import { Findings, findingsOf, MAX_BYTES, thresholdsOf, WITHOUT_HISTORY } from '../../lib/compute/findings/index.ts'
import { access, charge, filter, kib, query, route, sendJson } from '../../lib/http/index.ts'

const Query = z.object({
  namespace: filter('Containers of pods of this namespace'),
  node: filter('Containers on this node'),
})

/**
 * GET /compute/findings: which containers wait for CPU or memory, and for whom (workload-profiling, Compute finding; interop-profiling 3.4). Without
 * history nothing is known, and nothing is read.
 */
export default route({
  summary: 'Which containers wait for CPU or memory, and for whom',
  description:
    'Found in the minutes of the last five. Both filters hold; without any, the whole cluster is looked at. `truncated` says that there was too much to look at all of it: narrow the scope then.',
  answer: Findings,
}).get(
  '/compute/findings',
  access('read'),
  query(Query),
  charge((c) => (c.get('deps').config.computeHistoryRetentionDays === 0 ? 1 : kib(MAX_BYTES))),
  async (c) => {
    const { db, config } = c.get('deps')
    if (config.computeHistoryRetentionDays === 0) return sendJson(c, WITHOUT_HISTORY)
    return sendJson(c, await findingsOf(db.read, c.req.valid('query'), thresholdsOf(config)))
  },
)
