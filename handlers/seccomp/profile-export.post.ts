import { access, body, params, route, sendJson } from '../../lib/http/index.ts'
import { MAX_EXPORT_BODY_BYTES } from '../../lib/limits/limits.ts'
import { ExportBody, exportAnswers, exportProfile, WorkloadPath } from '../../lib/seccomp/index.ts'

/**
 * POST /seccomp/profiles/{namespace}/{kind}/{name}/export: the export with edits, which are not stored
 * (docs/contract.md#seccomp-profiles).
 */
export default route({
  summary: 'Export the seccomp profile of a workload with edits',
  description:
    'Like the `GET`, with the names in `add` allowed and those in `remove` left out. Nothing is stored: the ' +
    'observed set stays as it is.',
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
