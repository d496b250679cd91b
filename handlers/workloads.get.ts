import { access, BAD_REQUEST, chargeRows, codedErrors, query, route, sendJson } from '../lib/http/index.ts'
import { ListedProfilePage, ListQuery, readList } from '../lib/profile/list/index.ts'

/** The read budget is charged this for each workload. */
const WORKLOAD_BYTES = 2 * 1_024

/**
 * GET /workloads: the newest profile of each workload in short, by namespace, kind and name
 * (docs/contract.md#workload-profiles). A job computes them; the time of each is `computedAt`.
 */
export default route({
  summary: 'List the workloads and their posture',
  description:
    'The newest stored profile of each workload that has a live pod, in short. Where the newest attempt to compute ' +
    'it failed, `failedAt` and `lastError` say so beside the last good profile.',
  answer: ListedProfilePage,
  also: BAD_REQUEST,
}).get(
  '/workloads',
  access('read'),
  codedErrors,
  query(ListQuery, { unknown: 'ignored' }),
  chargeRows<typeof ListQuery>(WORKLOAD_BYTES, 1),
  async (c) => sendJson(c, await readList(c.get('deps').db.read, c.req.valid('query'))),
)
