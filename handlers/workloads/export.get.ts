import { access, codedErrors, params, query, route, sendJson } from '../../lib/http/index.ts'
import { chargeExport, exportAnswers, exportProfile, ReadQuery } from '../../lib/profile/export/index.ts'
import { ProfilePath } from '../../lib/profile/path.ts'

/**
 * GET /workloads/{namespace}/{kind}/{name}/export: policies, patches and inventories from the profile of a workload
 * (docs/contract.md#workload-profiles). Stores nothing.
 */
export default route({
  summary: 'Export policies and inventories from the profile of a workload',
  description:
    'Network policies, a seccomp profile, a patch of the security context, SBOMs, a draft of an OpenVEX document ' +
    'and an image policy. Nothing is applied. As YAML it can be applied as it is: all that is no Kubernetes object ' +
    'is in comments.',
  ...exportAnswers,
}).get(
  '/workloads/:namespace/:kind/:name/export',
  access('read'),
  codedErrors,
  params(ProfilePath),
  query(ReadQuery, { unknown: 'ignored' }),
  chargeExport,
  async (c) => {
    const { db, config } = c.get('deps')
    const { body, headers } = await exportProfile({ db, config }, c.req.valid('param'), c.req.valid('query'), false)
    return sendJson(c, body, headers)
  },
)
