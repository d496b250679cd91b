import { access, params, query, route, sendJson } from '../../lib/http/index.ts'
import { ExportQuery, exportAnswers, exportProfile, WorkloadPath } from '../../lib/seccomp/index.ts'

/** GET /seccomp/profiles/{namespace}/{kind}/{name}/export: a workload's observed profile as a resource to apply (interop-profiling 1.6). */
export default route({
  summary: 'The observed seccomp profile of a workload, as a resource to apply',
  description:
    'A SeccompProfile that allows what was observed. Its annotations, and in YAML the comments above it, tell how complete the capture is.',
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
