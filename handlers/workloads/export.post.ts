import { access, codedErrors, params, query, route, sendJson } from '../../lib/http/index.ts'
import { chargeExport, exportAnswers, exportProfile, RecordQuery } from '../../lib/profile/export/index.ts'
import { ProfilePath } from '../../lib/profile/path.ts'

/**
 * POST /workloads/{namespace}/{kind}/{name}/export: the export of GET, stored for later comparisons
 * (docs/contract.md#workload-profiles).
 */
export default route({
  summary: 'Export the profile of a workload, and compare later profiles with it',
  description:
    'The answer is that of `GET` with the same query; a body is ignored. The images and the security context of now ' +
    'are stored, and drift is the difference from them. The newest 20 exports of a workload are kept.',
  ...exportAnswers,
}).post(
  '/workloads/:namespace/:kind/:name/export',
  access('admin'),
  codedErrors,
  params(ProfilePath),
  query(RecordQuery, { unknown: 'ignored' }),
  chargeExport,
  async (c) => {
    const { db, config } = c.get('deps')
    const { body, headers } = await exportProfile({ db, config }, c.req.valid('param'), c.req.valid('query'), true)
    return sendJson(c, body, headers)
  },
)
