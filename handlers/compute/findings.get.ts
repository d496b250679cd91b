import { z } from 'zod'
import { Findings, findingsOf, MAX_BYTES, thresholdsOf, WITHOUT_HISTORY } from '../../lib/compute/findings/index.ts'
import { access, charge, filter, kib, query, route, sendJson } from '../../lib/http/index.ts'

const Query = z.object({
  namespace: filter('Only containers of this namespace'),
  node: filter('Only containers on this node'),
})

/**
 * GET /compute/findings: containers that wait for CPU or memory, and the culprit (docs/contract.md#compute). Findings
 * are computed from the history; if that is switched off, nothing is read.
 */
export default route({
  summary: 'List the containers that wait for CPU or memory, and why',
  description:
    'Computed from the last five minutes. Both filters combine; without any, the whole cluster is searched. If ' +
    '`truncated` is true, not everything could be searched: narrow the scope.',
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
