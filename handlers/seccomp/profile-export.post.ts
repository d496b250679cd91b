import { access, body, params, route, sendJson } from '../../lib/http/index.ts'
import {
  ExportBody,
  exportAnswers,
  exportProfile,
  MAX_EXPORT_BODY_BYTES,
  WorkloadPath,
} from '../../lib/seccomp/index.ts'

/** POST /seccomp/profiles/{namespace}/{kind}/{name}/export: the same with staged edits, which are stored nowhere (interop-profiling 1.6). */
export default route({
  summary: 'The observed seccomp profile of a workload with edits, as a resource to apply',
  description:
    'As the `GET`; what is allowed is what was observed and what is added, without what is removed. Only reads: what was observed stays as it is.',
  ...exportAnswers,
}).post(
  '/seccomp/profiles/:namespace/:kind/:name/export',
  access('read'),
  params(WorkloadPath),
  body(ExportBody, MAX_EXPORT_BODY_BYTES, { isOptional: true }),
  async (c) => {
    const { db, config } = c.get('deps')
    const { text, headers } = await exportProfile(
      db,
      c.req.valid('param'),
      c.req.valid('json'),
      config.annotationPrefix,
    )
    return sendJson(c, text, headers)
  },
)
