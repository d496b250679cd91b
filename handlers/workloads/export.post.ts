import type { z } from 'zod'
import { access, charge, codedErrors, kib, params, query, route, sendJson } from '../../lib/http/index.ts'
import { buildProfile } from '../../lib/profile/build.ts'
import { exportAnswers, exportCharge, exportProfile, RecordQuery } from '../../lib/profile/export/index.ts'
import { ProfilePath } from '../../lib/profile/path.ts'

type Asked = { out: { param: z.output<typeof ProfilePath>; query: z.output<typeof RecordQuery> } }

/**
 * POST /workloads/{namespace}/{kind}/{name}/export: the export of GET, stored for later comparisons
 * (docs/contract.md#workload-profiles).
 */
export default route({
  summary: 'Export the profile of a workload, and compare later profiles with it',
  description:
    'The answer is that of `GET` with the same query; a body is ignored. The images and the security context of now are ' +
    'stored: drift is what differs from them. The newest 20 exports of a workload are kept.',
  ...exportAnswers,
}).post(
  '/workloads/:namespace/:kind/:name/export',
  access('admin'),
  codedErrors,
  params(ProfilePath),
  query(RecordQuery, { unknown: 'ignored' }),
  charge<Asked>(async (c) => {
    const { db, config } = c.get('deps')
    return kib(await exportCharge(db.read, c.req.valid('param'), c.req.valid('query'), config))
  }),
  async (c) => {
    const { db, config } = c.get('deps')
    const key = c.req.valid('param')
    const built = await buildProfile({ db, config }, key, db.read)
    const { body, headers } = await exportProfile({ db, config }, key, built, c.req.valid('query'), true)
    return sendJson(c, body, headers)
  },
)
