import { z } from 'zod'
import {
  access,
  asArray,
  chargeRows,
  filter,
  filterText,
  pageLimit,
  query,
  route,
  sendJson,
  ZONED_TIME_OR_BLANK,
} from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'
import { DenialRow, readDenials } from '../../lib/seccomp/denials/index.ts'
import { parseRfc3339 } from '../../lib/time/timestamp.ts'

const DEFAULT_ROWS = 100
const MAX_ROWS = 500
/** Bytes a row may cost while its list is built (interop-profiling 1.10). */
const ROW_BYTES = 1_024

const Query = z.object({
  namespace: filter('Denials of pods of this namespace'),
  kind: filter('Denials of workloads of this kind'),
  workload: filter('Denials of workloads of this name'),
  since: documentedAs(
    filterText.transform((text, c) => {
      const time = text === null ? null : parseRfc3339(text)
      if (text === null || time !== null) return time
      c.addIssue({ code: 'custom', message: 'expected a time as in RFC 3339, with a zone' })
      return z.NEVER
    }),
    {
      type: 'string',
      pattern: ZONED_TIME_OR_BLANK,
      description: 'Denials that were last seen then or later: RFC 3339 with a zone; blank is no filter.',
    },
  ),
  limit: pageLimit(DEFAULT_ROWS, MAX_ROWS),
})

/** GET /seccomp/denials: kernel denials, those seen last first (workload-profiling, Denial row; interop-profiling 1.9). */
export default route({
  summary: 'What the kernel denied, the newest first',
  description: 'A row is all events of a pod, syscall and action. Filters are exact and combine.',
  answer: z.array(DenialRow).max(MAX_ROWS),
}).get('/seccomp/denials', access('read'), query(Query), chargeRows<typeof Query>(ROW_BYTES), async (c) => {
  const { limit, ...filter } = c.req.valid('query')
  const { db, config } = c.get('deps')
  const retentionDays = config.seccompDenialsRetentionDays
  return sendJson(c, asArray(await readDenials(db.read, { ...filter, retentionDays }, limit)))
})
