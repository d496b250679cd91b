import { access, params, query, route, sendJson } from '../../lib/http/index.ts'
import { ExportQuery, exportAnswers, exportProfile, WorkloadPath } from '../../lib/seccomp/index.ts'

/**
 * GET /seccomp/profiles/{namespace}/{kind}/{name}/export: the profile of a workload as a resource
 * (docs/contract.md#seccomp-profiles).
 */
export default route({
  summary: 'Export the seccomp profile of a workload',
  description:
    'Returns a SeccompProfile resource that allows the observed syscalls. Annotations, and in YAML the comments ' +
    'above it, say how complete the capture is.',
  ...exportAnswers,
}).get(
  '/seccomp/profiles/:namespace/:kind/:name/export',
  access('read'),
  params(WorkloadPath),
  query(ExportQuery, { unknown: 'ignored' }),
  async (c) => {
    const { db, config } = c.get('deps')
    const options = { ...c.req.valid('query'), add: [], remove: [] }
    const { text, headers } = await exportProfile(db, c.req.valid('param'), options, config.annotationPrefix)
    return sendJson(c, text, headers)
  },
)
