import { z } from 'zod'
import {
  access,
  asArray,
  chargeRows,
  filter,
  pageLimit,
  query,
  route,
  sendJson,
  zonedTimeFilter,
} from '../../lib/http/index.ts'
import { DenialRow, readDenials } from '../../lib/seccomp/denials/index.ts'

const DEFAULT_ROWS = 100
const MAX_ROWS = 500
/** The read budget is charged this for each row. */
const ROW_BYTES = 1_024

const Query = z.object({
  namespace: filter('Only denials of pods of this namespace'),
  kind: filter('Only denials of workloads of this kind'),
  workload: filter('Only denials of workloads with this name'),
  since: zonedTimeFilter('Only denials last seen at this time or later'),
  limit: pageLimit(DEFAULT_ROWS, MAX_ROWS),
})

/** GET /seccomp/denials: kernel denials, last seen first (docs/contract.md#denials). */
export default route({
  summary: 'List the syscalls that the kernel denied',
  description:
    'A row adds up all events of one pod, syscall and action; the last seen come first. Filters are exact and combine.',
  answer: z.array(DenialRow).max(MAX_ROWS),
}).get('/seccomp/denials', access('read'), query(Query), chargeRows<typeof Query>(ROW_BYTES), async (c) => {
  const { limit, ...filter } = c.req.valid('query')
  const { db, config } = c.get('deps')
  const retentionDays = config.seccompDenialsRetentionDays
  return sendJson(c, asArray(await readDenials(db.read, { ...filter, retentionDays }, limit)))
})
