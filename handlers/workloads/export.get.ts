import type { z } from 'zod'
import { access, charge, codedErrors, kib, params, query, route, sendJson } from '../../lib/http/index.ts'
import { buildProfile } from '../../lib/profile/build.ts'
import { exportAnswers, exportCharge, exportProfile, ReadQuery } from '../../lib/profile/export/index.ts'
import { ProfilePath } from '../../lib/profile/path.ts'

type Asked = { out: { param: z.output<typeof ProfilePath>; query: z.output<typeof ReadQuery> } }

/**
 * GET /workloads/{namespace}/{kind}/{name}/export: policies, patches and inventories from the profile of a workload
 * (docs/contract.md#workload-profiles). Stores nothing.
 */
export default route({
  summary: 'Export policies and inventories from the profile of a workload',
  description:
    'Network policies, a seccomp profile, a patch of the security context, SBOMs, a draft of an OpenVEX document and an ' +
    'image policy. Nothing is applied. As YAML it can be applied as it is: whatever is no Kubernetes object is a comment.',
  ...exportAnswers,
}).get(
  '/workloads/:namespace/:kind/:name/export',
  access('read'),
  codedErrors,
  params(ProfilePath),
  query(ReadQuery, { unknown: 'ignored' }),
  charge<Asked>(async (c) => {
    const { db, config } = c.get('deps')
    return kib(await exportCharge(db.read, c.req.valid('param'), c.req.valid('query'), config))
  }),
  async (c) => {
    const { db, config } = c.get('deps')
    const key = c.req.valid('param')
    const built = await buildProfile({ db, config }, key, db.read)
    const { body, headers } = await exportProfile({ db, config }, key, built, c.req.valid('query'), false)
    return sendJson(c, body, headers)
  },
)
